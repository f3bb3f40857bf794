"""Families of declared types, in the spellings of several dialects."""

import pytest

from bayeslink.schema.types import TypeFamily, type_family

TYPES = {
    TypeFamily.NUMBER: (
        "INTEGER int INT64 bigint UInt8 NUMBER(10,2) numeric DECIMAL(4) REAL float FLOAT64 money serial BIGSERIAL;"
        "double precision;integer unsigned;INT NOT NULL AUTO_INCREMENT;number;int DEFAULT NULL;unsigned big int"
    ),
    TypeFamily.DATE: "DATE datetime time YEAR timestamp TIMESTAMP_NTZ DateTime64;timestamp(6) with time zone;"
    "datetime DEFAULT NULL",
    TypeFamily.TEXT: "text VARCHAR(255) STRING nvarchar char(3) clob others VARCHAR2 enum('date','int');"
    "character varying(20);varchar(20) DEFAULT 'time';varchar(36) COLLATE utf8mb3_unicode_ci NOT NULL; ",
    TypeFamily.OTHER: "boolean BIT bit(1) blob bytea varbinary(8) JSON VARIANT interval point geometry uuid;"
    "ARRAY<STRING>;STRUCT<a INT64>;binary varying",
}
CASES = [
    (declared, family)
    for family, listed in TYPES.items()
    for part in listed.split(";")
    for declared in (part.split() if part == listed.split(";")[0] else [part])
]


@pytest.mark.parametrize(("declared", "family"), CASES)
def test_family(declared: str, family: TypeFamily):
    assert type_family(declared) is family


def test_what_is_not_stated_or_not_known_is_text():
    assert {type_family(declared) for declared in ("", "mystery", "integeer", "日付")} == {TypeFamily.TEXT}
