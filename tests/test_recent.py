from transom.recent import Recent


def test_the_oldest_entry_is_forgotten_and_an_entry_set_again_counts_once():
    recent: Recent[str, int] = Recent(2)
    recent["a"] = 1
    recent["b"] = 2
    recent["b"] = 3
    assert (recent.get("a"), recent.get("b")) == (1, 3)
    recent["c"] = 4
    assert ("a" in recent, "b" in recent, "c" in recent) == (False, True, True)


def test_an_entry_is_taken_out_once():
    recent: Recent[str, int] = Recent(2)
    recent["a"] = 1
    assert (recent.pop("a"), recent.pop("a"), recent.get("a")) == (1, None, None)
    recent["b"] = 2
    recent.clear()
    assert "b" not in recent
