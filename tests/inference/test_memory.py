"""Compiled programs are forgotten before they use up the memory maps of the process."""

import jax
import pytest

from bayeslink.inference import make_room


class Pretended:
    """A file of /proc with a made-up content."""

    def __init__(self, text: str | None):
        self.text = text

    def is_file(self) -> bool:
        return self.text is not None

    def read_text(self) -> str:
        return str(self.text)

    def open(self, mode: str):
        import io

        return io.BytesIO(str(self.text).encode())


@pytest.mark.parametrize(("maps", "forgets"), [(40, False), (60, True), (None, False)])
def test_programs_are_forgotten_past_half_of_the_maps(monkeypatch, maps: int | None, forgets: bool):
    files = {
        "/proc/self/maps": Pretended(None if maps is None else "line\n" * maps),
        "/proc/sys/vm/max_map_count": Pretended("100\n"),
    }
    cleared = []
    monkeypatch.setattr("bayeslink.inference.Path", files.__getitem__)
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(True))
    make_room()
    assert bool(cleared) == forgets
