import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="extra `attention`")
pytest.importorskip("peft", reason="extra `attention`")

import tiny_models
import torch
from tokenizers import processors

from bayeslink.evidence import attention_model
from bayeslink.evidence.attention import anchor_attention
from bayeslink.evidence.attention_model import LanguageModel, load_language_model
from bayeslink.evidence.attention_prompt import copying_prompt

BUILDERS = [tiny_models.tiny_llama, tiny_models.tiny_qwen2]
HYBRID = {"num_key_heads": 2, "num_value_heads": 2, "key_head_dim": 8, "value_head_dim": 8}
PROMPTS = [list(range(5, 60)), list(range(100, 130)), [7]]


def eager(model: LanguageModel, ids: list[int]) -> tuple[torch.Tensor, ...]:
    model.model.set_attn_implementation("eager")
    with torch.no_grad():
        found = model.model(torch.tensor([ids]), output_attentions=True).attentions
    model.model.set_attn_implementation(attention_model.INTERFACE)
    return found


@pytest.mark.parametrize("build", BUILDERS)
def test_weights_equal_those_that_eager_attention_returns(build):
    model = build()
    with torch.no_grad():
        found = model.weights(PROMPTS, model.layers)
    for row, ids in enumerate(PROMPTS):
        whole = eager(model, ids)
        for layer in model.layers:
            own = found[layer][row]
            assert torch.allclose(own[:, : len(ids)], whole[layer][0, :, -1], atol=1e-5)
            assert (own[:, len(ids) :] == 0).all()


@pytest.mark.parametrize("build", BUILDERS)
def test_chosen_heads_are_those_of_all(build):
    model = build()
    with torch.no_grad():
        every = model.weights(PROMPTS, [1])[1]
        some = model.weights(PROMPTS, [1], [3, 0])[1]
    assert torch.equal(some, every[:, [3, 0]])


def test_windowed_layers_are_left_out_and_their_mask_holds():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    kinds = ["sliding_attention", "full_attention", "full_attention"]
    config = Qwen2Config(
        **tiny_models.SHAPE, use_sliding_window=True, sliding_window=8, layer_types=kinds, initializer_range=0.3
    )
    model = LanguageModel("windowed", "0", tiny_models.tiny_tokenizer(), Qwen2ForCausalLM(config))
    assert model.layers == (1, 2)
    with torch.no_grad():
        found = model.weights(PROMPTS[:1], [2])[2]
    assert torch.allclose(found[0], eager(model, PROMPTS[0])[2][0, :, -1], atol=1e-5)
    with pytest.raises(ValueError, match="layer=0: windowed has no full attention there"):
        model.weights(PROMPTS, [0])


def test_layers_of_linear_attention_are_left_out():
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    torch.manual_seed(0)
    kinds = ["linear_attention", "full_attention", "linear_attention", "full_attention"]
    shape = tiny_models.SHAPE | {"num_hidden_layers": 4}
    linear = {f"linear_{name}": size for name, size in HYBRID.items()}
    config = Qwen3_5TextConfig(**shape, **linear, head_dim=8, layer_types=kinds, initializer_range=0.3)
    with attention_model.quiet():
        model = LanguageModel("hybrid", "0", tiny_models.tiny_tokenizer(), Qwen3_5ForCausalLM(config))
        assert model.layers == (1, 3)
        with torch.no_grad():
            found = model.weights(PROMPTS, model.layers)
        for row, ids in enumerate(PROMPTS):
            for layer, whole in zip(model.layers, eager(model, ids), strict=True):
                assert torch.allclose(found[layer][row, :, : len(ids)], whole[0, :, -1], atol=1e-5)
    for layer in (0, 2):
        with pytest.raises(ValueError, match=rf"layer={layer}: hybrid has no full attention there; use one of \(1, 3"):
            model.weights(PROMPTS, [1, layer])


def test_a_prompt_as_long_as_the_window_is_read_with_the_mask_that_the_model_makes(monkeypatch):
    """The one case in which a mask comes along; it hides nothing that the last token sees."""
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    config = MistralConfig(**tiny_models.SHAPE, sliding_window=55, initializer_range=0.3)
    model = LanguageModel("windowed", "0", tiny_models.tiny_tokenizer(), MistralForCausalLM(config))
    assert model.longest == 55
    masks, plain = [], attention_model._anchor_weights

    def watched(query, key, mask, *given):
        masks.append(mask)
        return plain(query, key, mask, *given)

    monkeypatch.setattr(attention_model, "_anchor_weights", watched)
    with torch.no_grad():
        found = model.weights(PROMPTS, [2])[2]
    assert masks[0] is not None
    for row, ids in enumerate(PROMPTS):
        assert torch.allclose(found[row, :, : len(ids)], eager(model, ids)[2][0, :, -1], atol=1e-5)
        assert (found[row, :, len(ids) :] == 0).all()


def test_layers_above_the_chosen_one_and_the_head_do_not_run():
    model, ran = tiny_models.tiny_llama(), []
    for place, layer in enumerate(model.model.model.layers):
        layer.register_forward_pre_hook(lambda *_, place=place: ran.append(place))
    model.model.lm_head.register_forward_pre_hook(lambda *_: ran.append("head"))
    with torch.no_grad():
        model.weights(PROMPTS, [1])
    assert ran == [0, 1]


def test_the_model_answers_as_before():
    model = tiny_models.tiny_llama()
    ids = torch.tensor([PROMPTS[0]])
    with torch.no_grad():
        ours = model.model(ids).logits
        model.model.set_attn_implementation("sdpa")
        assert torch.equal(ours, model.model(ids).logits)


def test_gradients_reach_the_weights_of_lower_layers_only():
    model = tiny_models.tiny_llama()
    model.weights(PROMPTS, [1], [0])[1][0, 0, 3].backward()
    layers = model.model.model.layers
    assert layers[0].mlp.up_proj.weight.grad.abs().max() > 0
    assert layers[2].self_attn.q_proj.weight.grad is None


def test_no_layer_makes_the_whole_matrix_of_attention(monkeypatch):
    """Nothing of tokens x tokens passes through the layers, neither as a mask nor as weights."""
    model, shapes = tiny_models.tiny_llama(), []
    plain = attention_model.sdpa_attention_forward

    def watched(module, query, key, value, mask, **kwargs):
        found = plain(module, query, key, value, mask, **kwargs)
        shapes.extend(tuple(item.shape) for item in (mask, *found) if item is not None)
        return found

    monkeypatch.setattr(attention_model, "sdpa_attention_forward", watched)
    with torch.no_grad():
        found = model.weights([list(range(300)) * 3], [2])[2]
    assert found.shape == (1, 4, 900)
    assert len(shapes) == 2
    assert all(shape.count(900) <= 1 for shape in shapes)


def test_attention_with_sinks_is_refused():
    from transformers import GptOssConfig, GptOssForCausalLM

    shape = {name: value for name, value in tiny_models.SHAPE.items() if name != "intermediate_size"}
    config = GptOssConfig(**shape, head_dim=8, intermediate_size=32, num_local_experts=2, num_experts_per_tok=1)
    model = LanguageModel("sinks", "0", tiny_models.tiny_tokenizer(), GptOssForCausalLM(config))
    with torch.no_grad(), pytest.raises(ValueError, match="is s_aux, which is not supported"):
        model.weights(PROMPTS, model.layers[:1])


def test_a_window_without_kinds_of_layers_bounds_the_prompt():
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(**tiny_models.SHAPE, sliding_window=40)
    model = LanguageModel("windowed", "0", tiny_models.tiny_tokenizer(), MistralForCausalLM(config))
    with torch.no_grad(), pytest.raises(ValueError, match="a prompt has 55 tokens, the model reads 40"):
        model.weights(PROMPTS, model.layers[:1])


def test_a_window_that_is_switched_off_bounds_nothing():
    model = tiny_models.tiny_llama()
    model.model.config.sliding_window = 40
    assert model.longest == 40
    model.model.config.use_sliding_window = False
    assert model.longest == 1024


def test_attention_that_is_capped_is_refused():
    from transformers import Gemma2Config, Gemma2ForCausalLM

    config = Gemma2Config(**tiny_models.SHAPE, head_dim=8, attn_logit_softcapping=50.0)
    model = LanguageModel("capped", "0", tiny_models.tiny_tokenizer(), Gemma2ForCausalLM(config))
    with torch.no_grad(), pytest.raises(ValueError, match="is softcap, which is not supported"):
        model.weights(PROMPTS, model.layers[:1])


def test_a_tokeniser_that_does_not_know_its_characters_is_refused():
    with pytest.raises(ValueError, match="model='slow': its tokeniser does not tell the characters of a token"):
        LanguageModel("slow", "0", SimpleNamespace(is_fast=False), tiny_models.tiny_llama().model)


def test_weights_that_are_missing_are_told(tmp_path):
    model = tiny_models.tiny_llama()
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 5}))
    with pytest.raises(ValueError, match=r"lacks 18 of its weights, such as .*layers\.3"):
        load_language_model(tmp_path)


@pytest.mark.parametrize("damage", ["missing", "truncated", "renamed", "settings"])
def test_an_adapter_that_does_not_fit_is_refused(tmp_path, damage):
    from peft import LoraConfig, get_peft_model
    from safetensors.torch import load_file, save_file

    base = tiny_models.tiny_llama()
    base.model.save_pretrained(tmp_path / "base")
    base.tokenizer.save_pretrained(tmp_path / "base")
    with attention_model.quiet():
        get_peft_model(base.model, LoraConfig(r=2, target_modules=["q_proj"])).save_pretrained(tmp_path / "adapter")
    assert load_language_model(tmp_path / "base", tmp_path / "adapter").layers == (0, 1, 2)
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:-40])
    elif damage == "settings":
        path.with_name("adapter_config.json").write_text("{}")
    else:
        save_file({name.replace("layers.0", "layers.9"): value for name, value in load_file(path).items()}, path)
    with pytest.raises(ValueError, match=r"adapter='.*adapter' does not fit .*base"):
        load_language_model(tmp_path / "base", tmp_path / "adapter")


@pytest.mark.parametrize(
    ("layers", "heads", "message"),
    [
        ([3], None, r"layer=3: tiny-llama has no full attention there; use one of \(0, 1, 2\)"),
        ([1], [4], "head=4: tiny-llama has heads 0 to 3"),
    ],
)
def test_a_layer_or_head_that_is_not_there_is_refused(layers, heads, message):
    with pytest.raises(ValueError, match=message):
        tiny_models.tiny_llama().weights(PROMPTS, layers, heads)


def test_a_prompt_longer_than_the_context_is_refused():
    with pytest.raises(ValueError, match=r"a prompt has 1025 tokens, the model reads 1024; rank tables"):
        tiny_models.tiny_llama().weights([[5] * 1025, [5]], [1])


def test_the_chat_template_is_used_where_there_is_one():
    text, begins = tiny_models.tiny_llama().chat("which singer?")
    assert text == "<|user|>which singer?<|end|><|model|>"
    assert text[begins:].startswith("which singer?")
    text, begins = tiny_models.tiny_llama(template=None).chat("which singer?")
    assert (text, begins) == ("which singer?\n\nCopy:\n", 0)


def test_a_template_that_changes_the_prompt_is_refused():
    model = tiny_models.tiny_llama(template="{{ messages[0]['content'] | upper }}")
    with pytest.raises(ValueError, match="its chat template changes the prompt"):
        model.chat("which singer?")


def test_offsets_are_those_of_the_text():
    text = "name@singer\nété@concert 😀"
    ((ids, offsets),) = tiny_models.tiny_llama().tokens([text])
    assert len(ids) == len(offsets)
    covered = {place for start, end in offsets for place in range(start, end)}
    assert covered == set(range(len(text)))
    assert [text[start:end] for start, end in offsets[-4:]] == ["😀"] * 4


def beginning(template: str | None) -> LanguageModel:
    """A model whose tokeniser puts a token in front of every text."""
    model = tiny_models.tiny_llama(template=template)
    first = processors.TemplateProcessing(single="<|user|> $A", special_tokens=[("<|user|>", 0)])
    model.tokenizer.backend_tokenizer.post_processor = first
    return model


def test_a_templates_first_token_is_not_written_twice():
    model = beginning(tiny_models.TEMPLATE)
    ((ids, offsets),) = model.tokens([model.chat("which singer?")[0]])
    assert ids.count(0) == 1
    assert offsets[0].tolist() == [0, 8]


def test_a_plain_prompt_begins_with_the_token_that_the_model_knows_to_begin_with(graph):
    model = beginning(None)
    prompt = copying_prompt("which?", graph)
    text, begins = model.chat(prompt.text)
    ((ids, offsets),) = model.tokens([text])
    assert ids[0] == 0
    assert offsets[0].tolist() == [0, 0]
    assert ids[1:] == tiny_models.tiny_llama(template=None).tokens([text])[0][0]
    with torch.no_grad():
        weights = model.weights([ids], [1])[1][0].double().numpy()
    (found,) = anchor_attention(model, [prompt], [1])
    for candidate, (start, end) in enumerate(prompt.spans + begins):
        own = [place for place, (a, b) in enumerate(offsets) if a < end and b > start]
        assert 0 not in own
        np.testing.assert_allclose(found[0, :, candidate], weights[:, own].mean(axis=1), rtol=1e-5)


def test_a_template_is_told_that_nothing_is_to_be_thought_first():
    """Templates of models that think do so unless they are told not to."""
    thought = "{% if enable_thinking | default(true) %}<think>{% endif %}"
    template = "{{ messages[0]['role'] }}:{{ messages[0]['content'] }}" + thought
    model = tiny_models.tiny_llama(template=template + "{% if add_generation_prompt %}<|model|>{% endif %}")
    assert model.chat("which?") == ("user:which?<|model|>", 5)


def test_batches_hold_every_prompt_once_and_are_no_longer_than_asked():
    lengths = [5, 900, 7, 300, 300, 2]
    found = list(tiny_models.tiny_llama().batches(lengths, 700))
    assert sorted(place for batch in found for place in batch) == list(range(6))
    assert all(len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= 700 for batch in found)


def test_a_batch_is_full_before_it_is_too_long():
    sizes = [len(batch) for batch in tiny_models.tiny_llama().batches([300] * 5, 700)]
    assert sizes == [2, 2, 1]


def test_a_saved_model_is_loaded_with_the_same_attention(tmp_path):
    model = tiny_models.tiny_llama()
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    again = load_language_model(tmp_path)
    with torch.no_grad():
        first, second = (item.weights(PROMPTS, [2])[2] for item in (model, again))
    assert torch.equal(first, second)
    assert len(again.revision) == 64


def test_the_revision_is_that_of_the_weights(tmp_path):
    """The same weights in another folder have it too, others have not."""
    found = {}
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        model = tiny_models.tiny_llama(seed)
        model.model.save_pretrained(tmp_path / name)
        model.tokenizer.save_pretrained(tmp_path / name)
        found[name] = load_language_model(tmp_path / name).revision
    assert found["one"] == found["again"] != found["other"]


@pytest.mark.parametrize("revision", ["", "c0ffee"])
def test_a_model_of_a_hub_is_asked_for_at_its_commit(monkeypatch, revision):
    """All three parts of it; its own revision is the commit that the hub states."""
    model, asked = tiny_models.tiny_llama(), []
    model.model.config._commit_hash = "c0ffee"
    parts = {
        "AutoConfig": model.model.config,
        "AutoTokenizer": model.tokenizer,
        "AutoModelForCausalLM": (model.model, {"missing_keys": set()}),
    }

    def reader(part):
        def read(name, **named):
            asked.append((name, named.get("revision")))
            return part

        return SimpleNamespace(from_pretrained=read)

    for name, part in parts.items():
        monkeypatch.setattr(attention_model, name, reader(part))
    assert load_language_model("owner/name", revision=revision).revision == "c0ffee"
    assert asked == [("owner/name", revision or None)] * 3


def test_a_model_that_was_training_drops_nothing_when_it_is_read():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**tiny_models.SHAPE, attention_dropout=0.5, initializer_range=0.3))
    read = LanguageModel("dropping", "0", tiny_models.tiny_tokenizer(), model.train())
    with torch.no_grad():
        first, second = (read.weights(PROMPTS, [2])[2] for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("name", ["/no/such/folder", "./nowhere", "model.gguf", "a-word"])
def test_a_model_that_is_not_there_is_refused(name):
    with pytest.raises(ValueError, match="no such f"):
        load_language_model(name)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_language_model(tmp_path)


@pytest.mark.parametrize("content", [b"", b"GGUF\x03\x00\x00\x00", b"nonsense" * 100], ids=["empty", "short", "other"])
def test_a_file_that_is_no_model_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setenv("BAYESLINK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bad.gguf").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be unpacked"):
        load_language_model(tmp_path / "bad.gguf")
    assert not list((tmp_path / "cache" / "models").iterdir())


def test_an_encoder_is_refused():
    from transformers import BertConfig, BertLMHeadModel

    config = BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32, vocab_size=400
    )
    model = LanguageModel("bert", "0", tiny_models.tiny_tokenizer(), BertLMHeadModel(config))
    with pytest.raises(ValueError, match=r"not causal|keeps the attention"):
        model.weights(PROMPTS, [0])


def test_attention_that_the_model_keeps_to_itself_is_refused():
    model = tiny_models.tiny_llama()
    model.model.model.layers[1].self_attn.forward = lambda hidden_states, **_: (hidden_states, None)
    with torch.no_grad(), pytest.raises(ValueError, match="keeps the attention of layer 1 to itself"):
        model.weights(PROMPTS, [1])


def test_numbers_of_the_anchor_attention_by_hand():
    query = torch.zeros(1, 2, 3, 2)
    query[0, :, 2] = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    key = torch.tensor([[[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]])
    found = attention_model._anchor_weights(query, key, None, 1.0, torch.tensor([2]), None)
    first, second = np.exp([1.0, 0.0, 1.0]), np.exp([0.0, 2.0, 2.0])
    expected = np.stack([first / first.sum(), second / second.sum()])
    assert np.allclose(found[0].numpy(), expected)
    short = attention_model._anchor_weights(query, key, None, 1.0, torch.tensor([0]), None)
    assert short[0].tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize("additive", [False, True])
def test_a_mask_hides_what_the_layer_does_not_see(additive):
    """By hand: two prompts of unlike length, where the mask hides one token of each from the last."""
    query, key = torch.zeros(2, 1, 4, 1), torch.zeros(2, 1, 4, 1)
    seen = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    seen[0, 0, 3, 0] = seen[1, 0, 1, 1] = False
    seen[0, 0, 2] = seen[1, 0, 3] = False
    mask = torch.zeros(2, 1, 4, 4).masked_fill(~seen, -torch.inf) if additive else seen
    found = attention_model._anchor_weights(query, key, mask, None, torch.tensor([3, 1]), None)
    assert np.allclose(found[:, 0].numpy(), [[0, 1 / 3, 1 / 3, 1 / 3], [1, 0, 0, 0]])


def test_the_scale_is_the_root_of_the_width_where_none_is_given():
    query, key = torch.full((1, 1, 2, 4), 1.0), torch.zeros(1, 1, 2, 4)
    key[0, 0, 1] = 1.0
    found = attention_model._anchor_weights(query, key, None, None, torch.tensor([1]), None)[0, 0]
    assert found.tolist() == pytest.approx([1 / (1 + np.exp(2)), np.exp(2) / (1 + np.exp(2))])
