from transom.recent import Recent


def test_the_oldest_entry_is_forgotten_and_one_set_again_is_the_newest():
    recent: Recent[str, int] = Recent(2)
    recent["a"] = 1
    recent["b"] = 2
    recent["a"] = 3
    assert recent == {"a": 3, "b": 2}
    recent["c"] = 4
    assert recent == {"a": 3, "c": 4}
    recent.update(d=5, e=6)
    assert recent == {"d": 5, "e": 6}


def test_who_wants_to_know_is_told_what_is_forgotten_to_make_room():
    forgotten: list[int] = []
    recent: Recent[str, int] = Recent(1, forgotten.append)
    recent["a"] = 1
    recent["a"] = 2
    recent["b"] = 3
    assert recent.pop("b") == 3
    assert forgotten == [2]
