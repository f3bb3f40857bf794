"""The client: what it sends, what it makes of every kind of reply, and that the key stays where it belongs."""

import json
import logging
import pickle
import re
import socket
import sys
import traceback
from contextlib import closing

import pytest
from chat_server import Raw, chat_server

from bayeslink.evidence.chat import ChatError, ChatFailure, ChatModel, Message, ask
from bayeslink.evidence.embedding import MissingExtraError
from bayeslink.grounding.endpoint import Endpoint

KEY = "sk-very-secret-1234567890"
HELLO: list[Message] = [{"role": "user", "content": "Hello"}]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in ("BAYESLINK_ENDPOINT", "BAYESLINK_MODEL", "BAYESLINK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def endpoint():
    """A maker of endpoints that are closed afterwards."""
    made = []

    def make(url: str, **settings) -> Endpoint:
        made.append(Endpoint(url, "small", KEY, **({"timeout": 5, "max_retries": 0} | settings)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def failure(model, messages=HELLO) -> ChatError:
    with pytest.raises(ChatError) as found:
        ask(model, messages)
    return found.value


def test_a_reply_comes_back_and_the_request_is_what_the_protocol_wants(endpoint):
    with chat_server(["Good day"]) as server:
        model = endpoint(server.url)
        assert isinstance(model, ChatModel)
        assert model(HELLO) == "Good day"
    assert server.bodies == [{"model": "small", "messages": HELLO, "temperature": 0.0}]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_no_temperature_is_sent_where_none_is_wanted(endpoint):
    with chat_server(["Good day"]) as server:
        endpoint(server.url, temperature=None)(HELLO)
    assert "temperature" not in server.bodies[0]


def test_the_environment_gives_what_is_left_out(monkeypatch):
    with chat_server(["Good day"]) as server:
        monkeypatch.setenv("BAYESLINK_ENDPOINT", server.url + "/")
        monkeypatch.setenv("BAYESLINK_MODEL", "other")
        monkeypatch.setenv("BAYESLINK_API_KEY", KEY)
        with closing(Endpoint()) as model:
            assert model(HELLO) == "Good day"
            assert (model.base_url, model.model) == (server.url, "other")
    assert server.bodies[0]["model"] == "other"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_keys_for_another_server_are_not_sent(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, f"ambient-{name}")
    with chat_server(["Good day"]) as server, closing(Endpoint(server.url, "small")) as model:
        model(HELLO)
    assert "ambient" not in json.dumps(server.headers)
    assert server.headers[0]["authorization"] == "Bearer none"
    assert not {"openai-organization", "openai-project"} & server.headers[0].keys()


@pytest.mark.parametrize(
    ("reply", "kind", "sentence"),
    [
        (Raw('{"error": {"message": "bad key"}}', 401), ChatFailure.REFUSED_KEY, "refuses the key (401); check"),
        (Raw("no", 403, content_type="text/plain"), ChatFailure.REFUSED_KEY, "refuses the key (403); check"),
        (Raw('{"error": {"message": "on\\nfire"}}', 500), ChatFailure.ERROR, "answers 500 for model 'small'"),
        (Raw('{"error": {"message": "no such model"}}', 404), ChatFailure.ERROR, "no such model"),
        (Raw("<html>", content_type="text/html"), ChatFailure.MALFORMED, "no chat completion"),
        (Raw("{nonsense"), ChatFailure.MALFORMED, "no chat completion"),
        (Raw("[]"), ChatFailure.MALFORMED, "no chat completion"),
        (Raw('{"choices": []}'), ChatFailure.MALFORMED, "no chat completion"),
        (Raw('{"choices": [{"message": {"content": null}}]}'), ChatFailure.MALFORMED, "no chat completion"),
        (Raw('{"choices": [{"message": {"content": [1]}}]}'), ChatFailure.MALFORMED, "no chat completion"),
        ("  ", ChatFailure.MALFORMED, "no chat completion"),
    ],
)
def test_every_other_reply_is_one_sentence(endpoint, reply, kind, sentence):
    with chat_server([reply]) as server:
        error = failure(endpoint(server.url))
    assert error.kind is kind
    assert sentence in str(error)
    assert str(error).startswith(f"endpoint {server.url} ")
    assert "\n" not in str(error)
    assert len(server.bodies) == 1


def test_a_server_that_is_slow_and_one_that_is_not_there(endpoint):
    with chat_server([Raw("{}", delay_s=1)]) as server:
        assert failure(endpoint(server.url, timeout=0.1)).kind is ChatFailure.TIMEOUT
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = failure(endpoint(f"http://127.0.0.1:{port}/v1"))
    assert error.kind is ChatFailure.UNREACHABLE
    assert str(error) == f"endpoint http://127.0.0.1:{port}/v1 cannot be reached; check the address"


def test_a_server_that_recovers_is_asked_again(endpoint):
    with chat_server([Raw("{}", 503), "Good day"]) as server:
        assert endpoint(server.url, max_retries=1)(HELLO) == "Good day"
    assert len(server.bodies) == 2


def test_the_key_is_nowhere_but_in_the_request(endpoint, caplog):
    caplog.set_level(logging.DEBUG)
    with chat_server([Raw(json.dumps({"error": {"message": f"{KEY} {'x' * 240} {KEY} is wrong"}}), 400)]) as server:
        model = endpoint(server.url)
        error = failure(model)
    shown = "".join(traceback.format_exception(error)) + repr(model) + caplog.text
    assert KEY not in shown
    assert KEY[:10] not in shown
    assert error.__cause__ is None
    assert "***" in str(error)
    with pytest.raises((TypeError, AttributeError)):
        pickle.dumps(model)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "base_url is not given; name the endpoint, such as https://host/v1, or set BAYESLINK_ENDPOINT"),
        ({"base_url": "http://h/v1"}, "model is not given; name the model, or set BAYESLINK_MODEL"),
        ({"base_url": "h/v1", "model": "m"}, "base_url='h/v1' is no address of an endpoint"),
        ({"base_url": "ftp://h/v1", "model": "m"}, "is no address of an endpoint"),
        ({"base_url": "http://h/v1?key=secret", "model": "m"}, "base_url='http://h/v1' is no address"),
        ({"base_url": "http://me:secret@h/v1", "model": "m"}, "base_url holds a password; leave it out"),
        ({"base_url": "http://h/v1", "model": "m", "timeout": 0}, "timeout=0, max_retries=2: use more than 0"),
        ({"base_url": "http://h/v1", "model": "m", "max_retries": -1}, "max_retries=-1: use more than 0"),
    ],
)
def test_wrong_settings_are_refused_without_their_secrets(arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)) as found:
        Endpoint(**arguments)
    assert "secret" not in str(found.value)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayeslink\[endpoint\]'"):
        Endpoint("http://h/v1", "m")


def test_any_callable_may_stand_in_and_what_it_does_wrong_is_told_without_its_text():
    def broken(messages):
        raise KeyError(KEY)

    error = failure(broken)
    assert (error.kind, str(error)) == (ChatFailure.ERROR, "the call to the model failed (KeyError)")
    assert failure(lambda messages: 3).kind is ChatFailure.MALFORMED
    assert failure(lambda messages: " ").kind is ChatFailure.MALFORMED
    assert ask(lambda messages: messages[0]["content"], HELLO) == "Hello"
