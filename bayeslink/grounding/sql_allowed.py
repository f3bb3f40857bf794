"""What a query may be made of: the kinds of syntax and the functions that read nothing but their arguments.

Lists of what is allowed and not of what is forbidden: a function that is not known here, or that a later parser
learns, is refused until somebody has looked at it. Left out on purpose are functions that run SQL or read files,
servers, catalogues or sequences (`query_to_xml`, `pg_read_file`, `load_extension`, `dblink`, `nextval`), those that
reach columns without naming them (`MATCH`, `COLUMNS`, `IDENTIFIER`), models, and what tells of the session.
"""

from sqlglot import exp

__all__ = ["SELECT_PARTS", "SET_PARTS", "TABLE_FUNCTIONS", "is_allowed"]

SET_PARTS = frozenset({"with_", "this", "expression", "distinct", "order", "limit", "offset"})
"""Parts of a set operation, and of a query in parentheses, that the check understands."""
SELECT_PARTS = (SET_PARTS - {"this", "expression"}) | {
    "kind",
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "qualify",
    "windows",
}
"""Parts of a SELECT that the check understands."""

TABLE_FUNCTIONS = {
    "json_each": ("key", "value", "type", "atom", "id", "parent", "fullkey", "path"),
    "json_tree": ("key", "value", "type", "atom", "id", "parent", "fullkey", "path"),
    "jsonb_each": ("key", "value"),
    "json_each_text": ("key", "value"),
    "jsonb_each_text": ("key", "value"),
    "json_array_elements": ("value",),
    "jsonb_array_elements": ("value",),
    "json_array_elements_text": ("value",),
    "jsonb_array_elements_text": ("value",),
    "generate_series": ("value", "generate_series"),
    "generate_subscripts": ("generate_subscripts",),
    "string_to_table": ("string_to_table",),
    "regexp_split_to_table": ("regexp_split_to_table",),
    "unnest": ("unnest",),
    "range": ("range",),
}
"""Functions that may stand in FROM: they make rows of their arguments alone. With the names of their columns."""

_SYNTAX = """
Add Alias All And Any AtTimeZone Between BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor
Boolean Bracket ByteString Case Cube DPipe DataTypeParam Distinct Div Dot EQ Escape Fetch Filter GT GTE Glob Group
GroupingSets Having HexString ILike IgnoreNulls In IntDiv Interval IntervalSpan Is JSONArrayContains JSONKeyValue
JSONPath JSONPathFilter JSONPathKey JSONPathRecursive JSONPathRoot JSONPathSelector JSONPathSlice JSONPathSubscript
JSONPathUnion JSONPathWildcard LT LTE Like Limit LimitOptions Literal Mod Mul NEQ National Neg Not Null NullSafeEQ
NullSafeNEQ Offset Or Order Ordered Overlaps Paren PropertyEQ Qualify RawString RespectNulls Rollup SimilarTo Slice
Sub Tuple Var Where Window WindowSpec WithinGroup
"""
_FUNCTIONS = """
Abs Acos Acosh AddMonths AnyValue ApproxDistinct ApproxQuantile ApproxQuantiles ArgMax ArgMin Array ArrayAgg ArrayAll
ArrayAny ArrayAppend ArrayCompact ArrayConcat ArrayConcatAgg ArrayContainedBy ArrayContains ArrayContainsAll
ArrayDistinct ArrayExcept ArrayFirst ArrayIntersect ArrayLast ArrayMax ArrayMin ArrayOverlaps ArrayPosition
ArrayPrepend ArrayRemove ArrayReverse ArraySize ArraySlice ArraySort ArraySum ArrayToString ArrayUniqueAgg Ascii Asin
Asinh Atan Atan2 Atanh Avg BitLength BitwiseAndAgg BitwiseCount BitwiseOrAgg BitwiseXorAgg ByteLength Cast Cbrt Ceil
Chr Coalesce Collate Concat ConcatWs Contains Convert ConvertTimezone Corr Cos Cosh Cot Count CountIf CovarPop
CovarSamp CumeDist CurrentDate CurrentDatetime CurrentTime CurrentTimestamp Date DateAdd DateBin DateDiff
DateFromParts DateFromUnixDate DateStrToDate DateSub DateToDateStr DateToDi DateTrunc Datetime DatetimeAdd
DatetimeDiff DatetimeSub DatetimeTrunc Day DayOfMonth DayOfWeek DayOfWeekIso DayOfYear Dayname DecodeCase Degrees
DenseRank Elt EndsWith EqualNull Exists Exp ExplodingGenerateSeries Extract Factorial First FirstValue Floor Format
GenerateDateArray GenerateSeries GenerateTimestampArray Greatest GroupConcat Grouping GroupingId Hex Hour If Initcap
IsArray IsInf IsNan JSONArray JSONArrayAgg JSONBContains JSONBExists JSONBExtract JSONBExtractScalar JSONBObjectAgg
JSONExists JSONExtract JSONExtractArray JSONExtractScalar JSONFormat JSONKeys JSONObject JSONObjectAgg JSONType
JSONValueArray JarowinklerSimilarity JustifyDays JustifyHours JustifyInterval Kurtosis Lag Last LastDay LastValue Lead
Least Left Length Levenshtein List Ln Localtime Localtimestamp Log LogicalAnd LogicalOr Lower MD5 MD5Digest
MakeInterval Map Max Median Min Minute Mode Month Monthname MonthsBetween NextDay NthValue Ntile Nullif NumberToStr
Nvl2 ObjectAgg Overlay Pad ParseDatetime ParseJSON ParseTime PercentRank PercentileCont PercentileDisc Pi Pow
PreviousDay Quantile Quarter Radians Rand RangeBucket Rank RegexpCount RegexpExtract RegexpExtractAll RegexpFullMatch
RegexpILike RegexpInstr RegexpLike RegexpReplace RegexpSplit RegexpSubstr RegrIntercept RegrR2 RegrSlope Repeat
Replace Reverse Right Round RowNumber SHA SHA2 SafeDivide Second Sign Sin Sinh Skewness Soundex Space Split SplitPart
Sqrt StandardHash StartsWith Stddev StddevPop StddevSamp StrPosition StrToDate StrToTime StrToUnix String
StringToArray Struct StructExtract Stuff Substring SubstringIndex Sum Tan Tanh Time TimeAdd TimeDiff TimeFromParts
TimeStrToDate TimeStrToTime TimeStrToUnix TimeSub TimeToStr TimeToTimeStr TimeToUnix TimeTrunc Timestamp TimestampAdd
TimestampDiff TimestampFromParts TimestampSub TimestampTrunc ToArray ToChar ToDays ToDouble ToNumber Translate Trim
Trunc Try TryCast TsOrDiToDi TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToDateStr TsOrDsToDatetime TsOrDsToTime
TsOrDsToTimestamp Typeof Unhex Unicode UnixDate UnixMicros UnixMillis UnixSeconds UnixToStr UnixToTime UnixToTimeStr
Unnest Upper UtcDate UtcTime UtcTimestamp Uuid Variance VariancePop Week WeekOfYear WidthBucket Xor Year YearOfWeek
"""
_ALLOWED = frozenset((_SYNTAX + _FUNCTIONS).split())
_NAMED_TEXT = """
age array_length btrim cardinality char date date_format date_part datetime div every find_in_set format group_concat
hex ifnull iif instr isfinite json json_agg json_array json_array_length json_build_object json_extract
json_group_array json_group_object json_object json_object_keys json_quote json_type json_typeof json_valid jsonb_agg
jsonb_array_length jsonb_build_object jsonb_object_keys jsonb_typeof julianday likelihood likely make_date make_time
make_timestamp nullif num_nonnulls num_nulls numnonnulls percentile position printf quote quote_literal random
regexp_match regexp_matches round row_to_json scale soundex split_part str_to_date strftime strpos substr sum time
timediff to_date to_json to_jsonb to_timestamp total trim_scale trunc typeof unicode unixepoch unlikely width_bucket
zeroblob
"""
_NAMED = frozenset(_NAMED_TEXT.split())
"""Functions that the parser has no kind for, by name in lower case."""

_NAME_HOLDERS = (exp.Alias, exp.Window, exp.Dot, exp.PropertyEQ, exp.Collate)
"""Where a bare identifier is a new name, a field or a collation, not something that is read."""


def is_allowed(node: exp.Expression) -> bool:
    """Whether this kind of syntax, or this function, reads nothing but the parts that it is made of."""
    if isinstance(node, exp.Anonymous):
        return isinstance(node.this, str) and node.this.lower() in _NAMED
    if isinstance(node, exp.Identifier):
        return isinstance(node.parent, _NAME_HOLDERS)
    if isinstance(node, exp.Dot):
        # (a).b is a field; a.b(c) is a function of somebody's, and SQLite reads 'a'.b as a column.
        return isinstance(node.expression, exp.Identifier) and not isinstance(node.this, (exp.Identifier, exp.Literal))
    if isinstance(node, exp.DataType):
        # PostgreSQL looks up the text of a regclass in its catalogue.
        return type(node) is exp.DataType and node.this is not exp.DataType.Type.USERDEFINED
    return type(node).__name__ in _ALLOWED
