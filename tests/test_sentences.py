"""Sentences that remember how they were made."""

import copy
import pickle
from typing import Final

from trellis.sentences import Sentence, Stored, adapt, advise, drop_advice, join, say, say_in, say_many, separate_limits

GERMAN: Final = {
    "There is no record with the id {id}.": "Es gibt keinen Datensatz mit der Nummer {id}.",
    "Nobody": "Niemand",
    "{who} has {count:,} keys.": "{who} hat {count:,} Schlüssel.",
}
SEPARATORS: Final = str.maketrans({",": ".", ".": ","})


def in_german(sentence: str) -> str:
    return say_in(sentence, lambda text: GERMAN.get(text, text), lambda _, many, __: GERMAN[many], SEPARATORS)


def test_a_sentence_is_an_english_text() -> None:
    sentence = say("There is no record with the id {id}.", id=7)
    assert sentence == "There is no record with the id 7."
    assert isinstance(sentence, str)
    assert in_german(sentence) == "Es gibt keinen Datensatz mit der Nummer 7."


def test_values_are_said_too_and_numbers_have_the_separators_of_the_language() -> None:
    assert say_many(1, "{who} has one key.", "{who} has {count:,} keys.", who="Ada") == "Ada has one key."
    sentence = say_many(1234567, "{who} has one key.", "{who} has {count:,} keys.", who=say("Nobody"))
    assert sentence == "Nobody has 1,234,567 keys."
    assert in_german(sentence) == "Niemand hat 1.234.567 Schlüssel."
    assert in_german(say("{share:.1f} of {id}, {who!r}, {is_on}", share=0.5, id=1234, who="Ada", is_on=True)) == (
        "0,5 of 1234, 'Ada', True"
    )


def test_a_text_that_is_in_no_catalogue_or_is_a_plain_one_stays_as_it_is() -> None:
    assert in_german("Nobody") == "Nobody"
    assert in_german(say("Send {id} as JSON: {}")) == "Send {id} as JSON: {}"
    assert in_german(say("Typed: {text}", text="{id} {0} %s")) == "Typed: {id} {0} %s"


def test_sentences_are_joined() -> None:
    joined = join([say("Nobody"), "typed {by} hand", say("There is no record with the id {id}.", id=7)], ", ")
    assert joined == "Nobody, typed {by} hand, There is no record with the id 7."
    assert in_german(joined) == "Niemand, typed {by} hand, Es gibt keinen Datensatz mit der Nummer 7."
    assert join([]) == ""


def test_a_sentence_survives_being_sent_to_a_process_and_copied() -> None:
    sentence = say("There is no record with the id {id}.", id=7)
    for other in (
        pickle.loads(pickle.dumps(sentence)),  # noqa: S301  # ours
        copy.copy(sentence),
        copy.deepcopy(sentence),
    ):
        assert isinstance(other, Sentence)
        assert other == sentence
        assert in_german(other) == in_german(sentence)


def test_a_sentence_can_be_changed_after_it_was_said() -> None:
    sentence = adapt(say("{who} has {count:,} keys.", who=say("Nobody"), count=2), lambda said, find: f"{find('Nobody')}: {said}")
    assert sentence == "Nobody: Nobody has 2 keys."
    assert in_german(sentence) == "Niemand: Niemand hat 2 Schlüssel."


def test_advice_for_programs_is_left_out_in_any_language() -> None:
    told = say("{who} has {count:,} keys.", who=say("Nobody"), count=2)
    sentence = advise(told, say("There is no record with the id {id}.", id=7))
    assert sentence == "Nobody has 2 keys. There is no record with the id 7."
    assert in_german(sentence) == "Niemand hat 2 Schlüssel. Es gibt keinen Datensatz mit der Nummer 7."
    assert in_german(drop_advice(sentence)) == "Niemand hat 2 Schlüssel."
    for other in (told, "As it is.", join((told, told))):
        assert drop_advice(other) is other


def test_what_was_stored_of_a_sentence_is_found_again() -> None:
    stored = Stored()
    for template in ("There is no record with the id {id}.", "Nobody", "Tried: {why}"):
        assert stored.add(template) is template
    for sentence, german in (
        (say("There is no record with the id {id}.", id=7), "Es gibt keinen Datensatz mit der Nummer 7."),
        (say("Tried: {why}", why=say("Nobody")), "Tried: Niemand"),
        (say("Tried: {why}", why="line\nfeed {id} (.*)"), "Tried: line\nfeed {id} (.*)"),
    ):
        text = str(sentence)
        assert type(text) is str
        assert stored.read(text) == text
        assert in_german(stored.read(text)) == german
    for other in ("", "nobody", "There is no record with the id .", "Nobody."):
        assert stored.read(other) is other


def test_what_somebody_else_has_said_is_not_taken_apart_without_end() -> None:
    stored, said = Stored(), ": ".join("a" * 2000)
    stored.add("{host}: {error}")
    assert stored.read(said) == said


def test_limits_are_separated_where_they_are_told_to_people() -> None:
    limit = say("must be at most {most} words, not {raw}.", most=1500, raw=2000)
    told = separate_limits(join([say("{name} {detail}", name="words", detail=limit), say("At most {most:,} in all.", most=9000)]))
    assert told == "words must be at most 1,500 words, not 2000. At most 9,000 in all."
    assert in_german(told) == "words must be at most 1.500 words, not 2000. At most 9.000 in all."
    several = say_many(2, "{count} of at most {most}", "{count} of at most {most} words", most=1000)
    assert separate_limits(several) == "2 of at most 1,000 words"
    assert separate_limits("as it is 1000") == "as it is 1000"
