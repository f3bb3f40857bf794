"""Language models of a few thousand weights, built on the spot with a tokeniser of their own."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from bayeslink.evidence.attention_model import LanguageModel

TEMPLATE = "<|user|>{{ messages[0]['content'] }}<|end|><|model|>"
SHAPE = {
    "vocab_size": 400,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}


def tiny_tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=380,
        special_tokens=["<|user|>", "<|end|>", "<|model|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = "singer concert stadium name age country year singer_in_concert question candidates task copy column table"
    tokenizer.train_from_iterator([words] * 20, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.chat_template = template
    return fast


def tiny_llama(seed: int = 0, template: str | None = TEMPLATE) -> LanguageModel:
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(**SHAPE, initializer_range=0.3))
    return LanguageModel("tiny-llama", "0", tiny_tokenizer(template), model)


def tiny_qwen2(seed: int = 0) -> LanguageModel:
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(Qwen2Config(**SHAPE, initializer_range=0.3))
    return LanguageModel("tiny-qwen2", "0", tiny_tokenizer(), model)
