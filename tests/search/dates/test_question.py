"""What a query says about time, and which end of it is asked for, read in eight languages; the rest is left alone."""

from __future__ import annotations

import re
import unicodedata
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.errors import QueryError
from notewell.search.dates.filters import time_reading
from notewell.search.dates.phrases import LANGUAGES
from notewell.search.dates.question import TimeReading, parse_day, read_time

TODAY = date(2026, 11, 16)  # a Monday


def day(text: str) -> date | None:
    return date.fromisoformat(text) if text else None


def ends(query: str, today: date = TODAY) -> tuple[date | None, date | None] | None:
    reading = read_time(query, today)
    return (reading.since, reading.until) if reading else None


# query, first day, last day; an empty text is an open end
CERTAIN = [
    # English: relative words
    ("what did we decide today?", "2026-11-16", "2026-11-16"),
    ("this morning's standup", "2026-11-16", "2026-11-16"),
    ("what happened yesterday", "2026-11-15", "2026-11-15"),
    ("Yesterday's decision", "2026-11-15", "2026-11-15"),
    ("dinner last night", "2026-11-15", "2026-11-15"),
    ("the day before yesterday", "2026-11-14", "2026-11-14"),
    ("3 days ago", "2026-11-13", "2026-11-13"),
    ("a week ago", "2026-11-09", "2026-11-15"),
    ("two weeks ago we met Ana", "2026-11-02", "2026-11-08"),
    ("what broke 2 months ago", "2026-09-01", "2026-09-30"),
    ("a couple of months ago", "2026-09-01", "2026-09-30"),
    ("two years ago", "2024-01-01", "2024-12-31"),
    ("last week", "2026-11-09", "2026-11-15"),
    ("what did I do this week", "2026-11-16", "2026-11-22"),
    ("the week before last", "2026-11-02", "2026-11-08"),
    ("invoices of last month", "2026-10-01", "2026-10-31"),
    ("this month", "2026-11-01", "2026-11-30"),
    ("last year", "2025-01-01", "2025-12-31"),
    ("this year's budget", "2026-01-01", "2026-12-31"),
    ("last quarter", "2026-07-01", "2026-09-30"),
    ("this quarter", "2026-10-01", "2026-12-31"),
    ("in the last 7 days", "2026-11-09", "2026-11-16"),
    ("the past two weeks", "2026-11-02", "2026-11-16"),
    ("over the last 3 months", "2026-08-16", "2026-11-16"),
    ("last Monday", "2026-11-09", "2026-11-09"),
    ("what was said last friday", "2026-11-13", "2026-11-13"),
    ("last Sunday", "2026-11-15", "2026-11-15"),
    ("Tuesday last week", "2026-11-10", "2026-11-10"),
    ("this Wednesday", "2026-11-18", "2026-11-18"),
    ("last March", "2026-03-01", "2026-03-31"),
    ("last November", "2025-11-01", "2025-11-30"),
    ("March last year", "2025-03-01", "2025-03-31"),
    # English: dates
    ("2026-02-03", "2026-02-03", "2026-02-03"),
    ("notes of 2026-02-03.", "2026-02-03", "2026-02-03"),
    ("deploy at 2026-02-03T10:15", "2026-02-03", "2026-02-03"),
    ("2026/02/03", "2026-02-03", "2026-02-03"),
    ("2026-02", "2026-02-01", "2026-02-28"),
    ("2024-02", "2024-02-01", "2024-02-29"),
    ("2026-W07", "2026-02-09", "2026-02-15"),
    ("in week 2026-W23", "2026-06-01", "2026-06-07"),
    ("in August 2026", "2026-08-01", "2026-08-31"),
    ("on 14 July 2026", "2026-07-14", "2026-07-14"),
    ('notes of "2026-02-03"', "2026-02-03", "2026-02-03"),
    ("March 2026", "2026-03-01", "2026-03-31"),
    ("may 2026", "2026-05-01", "2026-05-31"),
    ("Sept. 2025 review", "2025-09-01", "2025-09-30"),
    ("03/2026", "2026-03-01", "2026-03-31"),
    ("3 March 2026", "2026-03-03", "2026-03-03"),
    ("3rd of March, 2026", "2026-03-03", "2026-03-03"),
    ("March 3rd, 2026", "2026-03-03", "2026-03-03"),
    ("Dec 24, 2025", "2025-12-24", "2025-12-24"),
    ("29 February 2024", "2024-02-29", "2024-02-29"),
    ("3.3.2026", "2026-03-03", "2026-03-03"),
    ("am 03.04.2026", "2026-04-03", "2026-04-03"),
    ("3/3/2026", "2026-03-03", "2026-03-03"),
    ("3/14/2026", "2026-03-14", "2026-03-14"),
    ("14/3/2026", "2026-03-14", "2026-03-14"),
    ("14-03-2026", "2026-03-14", "2026-03-14"),
    ("Q3 2026", "2026-07-01", "2026-09-30"),
    ("goals for Q4/2025", "2025-10-01", "2025-12-31"),
    ("2026 Q1", "2026-01-01", "2026-03-31"),
    # English: bounds
    ("since yesterday", "2026-11-15", ""),
    ("since March", "2026-03-01", ""),
    ("everything since 2025", "2025-01-01", ""),
    ("after 2026-02-03", "2026-02-04", ""),
    ("after last week", "2026-11-16", ""),
    ("before March 2026", "", "2026-02-28"),
    ("1970年前", "", "1969-12-31"),
    ("2000 年之前", "", "1999-12-31"),
    ("2000년 전", "", "1999-12-31"),
    ("what was the plan before 2024?", "", "2023-12-31"),
    ("until 3 March 2026", "", "2026-03-03"),
    ("up to last month", "", "2026-10-31"),
    ("prior to May 2025", "", "2025-04-30"),
    ("since Monday", "2026-11-16", ""),
    ("from March 2026 onwards", "2026-03-01", ""),
    ("2025 or later", "2025-01-01", ""),
    ("between 2026-02-03 and 2026-02-10", "2026-02-03", "2026-02-10"),
    ("between March and May", "2026-03-01", "2026-05-31"),
    ("between October and February", "2025-10-01", "2026-02-28"),
    ("from 2023 to 2024", "2023-01-01", "2024-12-31"),
    ("2026-02-03 to 2026-02-10", "2026-02-03", "2026-02-10"),
    ("2026-02-03..2026-02-10", "2026-02-03", "2026-02-10"),
    ("between 2026-05 and 2026-02", "2026-02-01", "2026-05-31"),
    ("between March 3 and March 7, 2024", "2024-03-03", "2024-03-07"),
    ("between 3 and 7 March 2025", "2025-03-03", "2025-03-07"),
    ("March 3-7, 2025", "2025-03-03", "2025-03-07"),
    ("since March 2025 but before 2026-01-15", "2025-03-01", "2026-01-14"),
    ("what did the March 2026 plan say about trips since last week", "2026-11-09", ""),
    # German
    ("Was war gestern?", "2026-11-15", "2026-11-15"),
    ("vorgestern", "2026-11-14", "2026-11-14"),
    ("heute Morgen", "2026-11-16", "2026-11-16"),
    ("vor 3 Tagen", "2026-11-13", "2026-11-13"),
    ("vor zwei Wochen", "2026-11-02", "2026-11-08"),
    ("vor einem Monat", "2026-10-01", "2026-10-31"),
    ("letzte Woche", "2026-11-09", "2026-11-15"),
    ("diese Woche", "2026-11-16", "2026-11-22"),
    ("letzten Monat", "2026-10-01", "2026-10-31"),
    ("letztes Jahr", "2025-01-01", "2025-12-31"),
    ("letzten Freitag", "2026-11-13", "2026-11-13"),
    ("März 2026", "2026-03-01", "2026-03-31"),
    ("3. März 2026", "2026-03-03", "2026-03-03"),
    ("seit März 2026", "2026-03-01", ""),
    ("vor dem 3. März 2026", "", "2026-03-02"),
    ("bis 3.3.2026", "", "2026-03-03"),
    ("zwischen Januar und März 2025", "2025-01-01", "2025-03-31"),
    ("vom 3.3.2026 bis 7.3.2026", "2026-03-03", "2026-03-07"),
    ("die letzten 7 Tage", "2026-11-09", "2026-11-16"),
    # French
    ("hier", "2026-11-15", "2026-11-15"),
    ("avant-hier", "2026-11-14", "2026-11-14"),
    ("aujourd'hui", "2026-11-16", "2026-11-16"),
    ("il y a 3 jours", "2026-11-13", "2026-11-13"),
    ("la semaine dernière", "2026-11-09", "2026-11-15"),
    ("le mois dernier", "2026-10-01", "2026-10-31"),
    ("l'année dernière", "2025-01-01", "2025-12-31"),
    ("lundi dernier", "2026-11-09", "2026-11-09"),
    ("le 3 mars 2026", "2026-03-03", "2026-03-03"),
    ("1er août 2026", "2026-08-01", "2026-08-01"),
    ("depuis février 2026", "2026-02-01", ""),
    ("avant le 3 mars 2026", "", "2026-03-02"),
    ("entre janvier et mars 2025", "2025-01-01", "2025-03-31"),
    # Spanish
    ("ayer", "2026-11-15", "2026-11-15"),
    ("anteayer", "2026-11-14", "2026-11-14"),
    ("hace tres días", "2026-11-13", "2026-11-13"),
    ("la semana pasada", "2026-11-09", "2026-11-15"),
    ("el año pasado", "2025-01-01", "2025-12-31"),
    ("el lunes pasado", "2026-11-09", "2026-11-09"),
    ("3 de marzo de 2026", "2026-03-03", "2026-03-03"),
    ("desde enero de 2026", "2026-01-01", ""),
    ("antes de 2025", "", "2024-12-31"),
    ("hasta el 3 de marzo de 2026", "", "2026-03-03"),
    # Portuguese
    ("ontem", "2026-11-15", "2026-11-15"),
    ("anteontem", "2026-11-14", "2026-11-14"),
    ("há 3 dias", "2026-11-13", "2026-11-13"),
    ("duas semanas atrás", "2026-11-02", "2026-11-08"),
    ("semana passada", "2026-11-09", "2026-11-15"),
    ("mês passado", "2026-10-01", "2026-10-31"),
    ("segunda-feira passada", "2026-11-09", "2026-11-09"),
    ("3 de março de 2026", "2026-03-03", "2026-03-03"),
    ("depois de março de 2026", "2026-04-01", ""),
    # Chinese
    ("昨天的会议", "2026-11-15", "2026-11-15"),
    ("前天", "2026-11-14", "2026-11-14"),
    ("今天", "2026-11-16", "2026-11-16"),
    ("3天前", "2026-11-13", "2026-11-13"),
    ("两周前", "2026-11-02", "2026-11-08"),
    ("三个月前", "2026-08-01", "2026-08-31"),
    ("上周的决定", "2026-11-09", "2026-11-15"),
    ("上周三说了什么", "2026-11-11", "2026-11-11"),
    ("上个月", "2026-10-01", "2026-10-31"),
    ("去年三月", "2025-03-01", "2025-03-31"),
    ("2026年3月3日", "2026-03-03", "2026-03-03"),
    ("２０２６年３月", "2026-03-01", "2026-03-31"),
    ("2026年3月3日之前", "", "2026-03-02"),
    ("2026年3月以来", "2026-03-01", ""),
    ("八月以来", "2026-08-01", ""),
    ("从2026年3月到2026年5月", "2026-03-01", "2026-05-31"),
    ("最近7天", "2026-11-09", "2026-11-16"),
    # Japanese
    ("昨日の打ち合わせ", "2026-11-15", "2026-11-15"),
    ("おととい", "2026-11-14", "2026-11-14"),
    ("3日前", "2026-11-13", "2026-11-13"),
    ("2週間前", "2026-11-02", "2026-11-08"),
    ("3か月前", "2026-08-01", "2026-08-31"),
    ("先週", "2026-11-09", "2026-11-15"),
    ("先週の水曜日", "2026-11-11", "2026-11-11"),
    ("先月の請求書", "2026-10-01", "2026-10-31"),
    ("2026年3月3日以降", "2026-03-03", ""),
    ("2026年3月まで", "", "2026-03-31"),
    ("2026年3月から2026年5月まで", "2026-03-01", "2026-05-31"),
    # Korean
    ("어제 회의", "2026-11-15", "2026-11-15"),
    ("그저께", "2026-11-14", "2026-11-14"),
    ("3일 전", "2026-11-13", "2026-11-13"),
    ("지난주", "2026-11-09", "2026-11-15"),
    ("지난주 수요일", "2026-11-11", "2026-11-11"),
    ("지난달에 쓴 글", "2026-10-01", "2026-10-31"),
    ("작년", "2025-01-01", "2025-12-31"),
    ("2026년 3월 3일", "2026-03-03", "2026-03-03"),
    ("2026년 3월부터", "2026-03-01", ""),
    ("2026년 3월 3일 이전", "", "2026-03-02"),
]

UNCERTAIN = [
    ("what did we plan in March?", "2026-03-01", "2026-03-31"),
    ("trips in may", "2026-05-01", "2026-05-31"),
    ("in December", "2025-12-01", "2025-12-31"),
    ("in November", "2026-11-01", "2026-11-30"),
    ("invoice from March", "2026-03-01", "2026-03-31"),
    ("late January", "2026-01-01", "2026-01-31"),
    ("what happened in August", "2026-08-01", "2026-08-31"),
    ("before Friday", "", "2026-11-12"),
    ("until March", "", "2026-03-31"),
    ("the year 2025", "2025-01-01", "2025-12-31"),
    ('who wrote "on 2026-02-03 we met Ana"?', "2026-02-03", "2026-02-03"),
    ("„seit gestern ist alles gut“, wer hat das geschrieben?", "2026-11-15", ""),
    ("「昨日の会議は中止」と書いたのは誰", "2026-11-15", "2026-11-15"),
    ("> we met on 2026-02-03\nwho?", "2026-02-03", "2026-02-03"),
    ("what does `2026-02-03 ERROR disk full` mean", "2026-02-03", "2026-02-03"),
    ("end of June", "2026-06-01", "2026-06-30"),
    ("in 2025", "2025-01-01", "2025-12-31"),
    ("as of 2025", "2025-01-01", "2025-12-31"),
    ("in Q2", "2026-04-01", "2026-06-30"),
    ("3 March", "2026-03-03", "2026-03-03"),
    ("March 3rd", "2026-03-03", "2026-03-03"),
    ("March 3", "2026-03-03", "2026-03-03"),
    ("on march 3", "2026-03-03", "2026-03-03"),
    ("December 24", "2025-12-24", "2025-12-24"),
    ("29 February", "2024-02-29", "2024-02-29"),
    ("on Monday", "2026-11-16", "2026-11-16"),
    ("on Friday", "2026-11-13", "2026-11-13"),
    ("im März", "2026-03-01", "2026-03-31"),
    ("im August", "2026-08-01", "2026-08-31"),
    ("im April", "2026-04-01", "2026-04-30"),
    ("en avril", "2026-04-01", "2026-04-30"),
    ("em abril", "2026-04-01", "2026-04-30"),
    ("am Montag", "2026-11-16", "2026-11-16"),
    ("en mars", "2026-03-01", "2026-03-31"),
    ("mars 2026", "2026-03-01", "2026-03-31"),
    ("en mayo", "2026-05-01", "2026-05-31"),
    ("em março", "2026-03-01", "2026-03-31"),
    ("3月的计划", "2026-03-01", "2026-03-31"),
    ("三月份", "2026-03-01", "2026-03-31"),
    ("在八月", "2026-08-01", "2026-08-31"),
    ("在十一月开的会", "2026-11-01", "2026-11-30"),
    ("八月里", "2026-08-01", "2026-08-31"),
    ("8月に", "2026-08-01", "2026-08-31"),
    ("3月3日", "2026-03-03", "2026-03-03"),
    ("2025年", "2025-01-01", "2025-12-31"),
    ("3월 3일", "2026-03-03", "2026-03-03"),
    ("월요일에", "2026-11-16", "2026-11-16"),
]

NO_TIME = [
    "", "   ", "guest wifi password", "may", "you may go", "this may break", "this march was long", "march forward",
    "we march 3 miles", "it may 3 times fail", "the second one", "sun", "sat nav", "monday", "friday deploys",
    "marching band", "august company", "march", "May", "version 1.2.3", "release 2026.9.1", "v2026.3.3", "python 3.11",
    "192.168.10.7", "10.3.2026.1", "at 10:30", "24/7", "3/4/2026", "03-04-2026", "2026-13", "2026-02-30",
    "30 February 2026", "31.6.2026", "32/1/2026", "CVE-2026-0203", "CVE-2026-02", "HARB-2026-02", "2026", "port 2025",
    "in 2048", "in 2025 lines", "after 2000 requests", "since 1999 users", "2020-21 season", "2026-W60", "today.md",
    "yesterday_backup", "last-week", "q3", "Q5 2026", "next week", "tomorrow", "weekly", "the last one", "last",
    "the week before 3 March 2026", "two weeks after 3 March 2026", "the Sunday before 2026-03-03",
    "die Woche vor dem 3. März 2026", "la semaine avant le 3 mars 2026",
    "a few days", "recently", "three weeks", "the last week of March", "last Monday of the month",
    "last year of school", "budget 2026", "revenue 2023 – 2024", "Was steht hier?", "Wer arbeitet hier",
    "在五月天的演唱会", "in the 1970's", "in the 1970s", "1960年代", "1990년대",
    "Mars rover", "mayo and ketchup", "Marco Polo", "mars", "hierarchy",
    "heuteabend", "vor allem", "nach Hause", "五月天", "三个月", "月曜", "일요일", "2026年13月", "1234567890",
    "0xdec 2026x", "+49 2026 1234", "10,2026", "99999 days ago" , "9999 years ago",
]  # fmt: skip


@pytest.mark.parametrize(("query", "since", "until"), CERTAIN, ids=[case[0] for case in CERTAIN])
def test_a_time_that_is_certain(query, since, until):
    assert ends(query) == ends(f"{query} / 2019-05-04") == (day(since), day(until))


@pytest.mark.parametrize(("query", "since", "until"), UNCERTAIN, ids=[case[0] for case in UNCERTAIN])
def test_a_time_that_may_be_something_else(query, since, until):
    assert ends(query) == (day(since), day(until))
    if query in {"before Friday", "until March"}:  # a bound wins over a day, so only a certain bound wins over it
        assert ends(f"{query} / between 2019-05-04 and 2019-05-06") == (date(2019, 5, 4), date(2019, 5, 6))
    else:
        assert ends(f"{query} / 2019-05-04") == (date(2019, 5, 4), date(2019, 5, 4))


@pytest.mark.parametrize("query", NO_TIME)
def test_what_is_no_time_is_not_read_as_one(query):
    assert read_time(query, TODAY) is None


def test_of_two_times_the_quoted_one_does_not_count():
    assert ends('who said "since March 2026 all is well" last week?') == (date(2026, 11, 9), date(2026, 11, 15))


# --- newest and oldest -------------------------------------------------------------------------

NEWEST = [
    "the newest decision about the roof", "latest price of milk", "most recent meeting with Ana",
    "last decision about X", "the last two invoices", "last 3 meetings", "the last team meeting",
    "the last time we met",
    "last known address",
    "when did we last see the dentist", "when was the car last serviced", "who did we most recently hire",
    "die neueste Entscheidung zum Dach", "letzte Entscheidung", "letzter Zahnarzttermin", "die letzten drei Rechnungen",
    "das letzte Mal beim Arzt", "wann waren wir zuletzt beim Arzt", "aktuellste Preisliste", "Neuste Notiz",
    "la décision la plus récente", "dernière réunion", "les trois dernières factures", "la dernière fois",
    "la decisión más reciente", "última factura", "la última vez que vimos a Ana", "a decisão mais recente",
    "última reunião", "最新的决定", "最近一次会议", "上次会议说了什么", "最後一次", "最新の議事録", "最近の会議",
    "前回の打ち合わせ", "最後に歯医者に行ったのはいつ", "최신 가격", "가장 최근 회의", "마지막 회의", "지난번 회의",
    "언제 마지막으로 만났지",
]  # fmt: skip

OLDEST = [
    "oldest note on roses", "the first time we met Ana", "earliest mention of Kyoto", "first meeting with Ana",
    "älteste Notiz", "Aelteste Rechnung", "erste Besprechung mit Ana", "zum ersten Mal",
    "erstmals erwähnt", "la note la plus ancienne", "première réunion", "la première fois", "nota más antigua",
    "primera reunión con Ana", "la primera vez", "primeira vez", "nota mais antiga", "最早的记录", "第一次见面",
    "最初の打ち合わせ", "一番古いメモ", "初めて会った日", "가장 오래된 메모", "처음으로 만난 날", "첫 회의",
]  # fmt: skip

NO_ORDER = [
    "at last", "it lasts", "last", "last name", "first name", "when did Ana change her last name", "last name change",
    "last-minute change", "last minute meeting", "last resort", "last page", "how long does a session last",
    "first aid kit", "first order logic", "first quarter results", "first", "first floor", "at the latest",
    "by then at the latest", "docker image:latest", "latest.json", "most recently used cache", "recently",
    "recent notes", "oldest brother of Ana", "who is the oldest member", "earliest train", "first and last meeting",
    "lately", "when did we first hear of it", "when did she get her first bicycle",
    'who said "the latest decision is final"', "nicht zuletzt", "letzte Instanz", "älteste Tochter", "erster Stock",
    "in letzter Zeit", "dernier étage", "premier ministre", "plus grand", "primer piso", "última pena", "mais um",
    "最近的地铁站", "最近怎么样", "初めての方", "최근 회의", "마지막 잎새",
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "order"), [*((query, "newest") for query in NEWEST), *((query, "oldest") for query in OLDEST)]
)
def test_a_query_asks_for_the_newest_or_the_oldest(query, order):
    reading = read_time(query, TODAY)
    assert (reading.order, reading.since, reading.until) == (order, None, None)
    assert reading.meaning == f"{reading.words}: {order} first"


@pytest.mark.parametrize("query", NO_ORDER)
def test_in_doubt_there_is_no_order(query):
    assert read_time(query, TODAY) is None


@pytest.mark.parametrize(
    "query",
    ["last week", "last March", "last 3 days", "letzte Woche", "la semaine dernière", "última semana", "最近7天"],
)
def test_a_time_is_no_order(query):
    assert read_time(query, TODAY).order is None


@pytest.mark.parametrize(
    ("query", "words", "meaning"),
    [
        (
            "the latest decision in March 2026",
            "latest in March 2026",
            "latest in March 2026: 2026-03-01 to 2026-03-31, newest first",
        ),
        (
            "since last week, the first meeting",
            "since last week first",
            "since last week first: from 2026-11-09 on, oldest first",
        ),
        ("2026年3月最新的决定", "2026年3月 最新的", "2026年3月 最新的: 2026-03-01 to 2026-03-31, newest first"),
    ],
    ids=lambda value: value,
)
def test_a_time_and_an_order(query, words, meaning):
    reading = read_time(query, TODAY)
    assert (reading.words, reading.meaning) == (words, meaning)


# --- what a reading lets through ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "until", "days", "expected"),
    [
        pytest.param("2026-03-01", "2026-03-31", ("2026-03-31", "2026-04-02"), True, id="begins on the last day"),
        pytest.param("2026-03-01", "2026-03-31", ("2026-02-01", "2026-03-01"), True, id="ends on the first day"),
        pytest.param("2026-03-01", "2026-03-31", ("2026-01-01", "2026-12-31"), True, id="all around it"),
        pytest.param("2026-03-01", "2026-03-31", ("2026-04-01", "2026-04-01"), False, id="after"),
        pytest.param("2026-03-01", "2026-03-31", ("2026-02-28", "2026-02-28"), False, id="before"),
        pytest.param("2026-03-01", "", ("2031-01-01", "2031-01-01"), True, id="no end"),
        pytest.param("", "2026-03-31", ("1999-01-01", "1999-01-01"), True, id="no beginning"),
        pytest.param("", "", ("1999-01-01", "1999-01-01"), True, id="an order alone"),
        pytest.param("", "", None, False, id="no days"),
    ],
)
def test_which_days_a_reading_holds(since, until, days, expected):
    reading = TimeReading(day(since), day(until), "words", "meaning")
    assert reading.holds(days and (day(days[0]), day(days[1]))) is expected


# --- what a reading says -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "words", "meaning"),
    [
        ("what did we do last week?", "last week", "last week: 2026-11-09 to 2026-11-15"),
        ("Yesterday's news", "Yesterday", "Yesterday: 2026-11-15"),
        ("bills since  March 2026", "since  March 2026", "since March 2026: from 2026-03-01 on"),
        ("bills before 2026", "before 2026", "before 2026: up to 2025-12-31"),
        ("plans in March", "in March", "in March: 2026-03-01 to 2026-03-31"),
        ("Notizen vor 3 Tagen", "vor 3 Tagen", "vor 3 Tagen: 2026-11-13"),
        ("2026年3月3日之前的会议", "2026年3月3日之前", "2026年3月3日之前: up to 2026-03-02"),
        ("from 2023 to 2024", "from 2023 to 2024", "from 2023 to 2024: 2023-01-01 to 2024-12-31"),
        ("fe\u0301vrier 2026", "février 2026", "février 2026: 2026-02-01 to 2026-02-28"),
    ],
    ids=lambda value: value,
)
def test_a_reading_says_what_it_was_read_from_and_what_it_means(query, words, meaning):
    reading = read_time(query, TODAY)
    assert (reading.words, reading.meaning) == (words, meaning)


@pytest.mark.parametrize(
    ("today", "expected"),
    [
        pytest.param(date(2026, 1, 1), (date(2025, 12, 1), date(2025, 12, 31)), id="over the new year"),
        pytest.param(date(2024, 3, 31), (date(2024, 2, 1), date(2024, 2, 29)), id="from a long month to a leap one"),
    ],
)
def test_last_month_at_the_edges(today, expected):
    assert ends("last month", today) == expected


@pytest.mark.parametrize("offset", range(7))
def test_last_week_is_the_week_before_whatever_day_it_is(offset):
    assert ends("last week", date(2026, 11, 16) + timedelta(days=offset)) == (date(2026, 11, 9), date(2026, 11, 15))


def test_the_first_days_of_the_calendar_have_no_yesterday():
    assert read_time("yesterday", date.min) is None
    assert read_time("before 0001-01-01", date.min) is None


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-02-03", date(2026, 2, 3)),
        (" 2026-02-03 ", date(2026, 2, 3)),
        ("2026-02", (date(2026, 2, 1), date(2026, 2, 28))),
        ("2026", (date(2026, 1, 1), date(2026, 12, 31))),
        ("2031", (date(2031, 1, 1), date(2031, 12, 31))),
        ("yesterday", date(2026, 11, 15)),
        ("last week", (date(2026, 11, 9), date(2026, 11, 15))),
        ("3 days ago", date(2026, 11, 13)),
        ("last Monday", date(2026, 11, 9)),
        ("Monday", date(2026, 11, 16)),
        ("march", (date(2026, 3, 1), date(2026, 3, 31))),
        ("in March", (date(2026, 3, 1), date(2026, 3, 31))),
        ("March 3rd, 2026", date(2026, 3, 3)),
        ("3.3.2026", date(2026, 3, 3)),
        ("Q3 2026", (date(2026, 7, 1), date(2026, 9, 30))),
        ("gestern", date(2026, 11, 15)),
        ("昨天", date(2026, 11, 15)),
        ("先週", (date(2026, 11, 9), date(2026, 11, 15))),
        ("지난주", (date(2026, 11, 9), date(2026, 11, 15))),
    ],
    ids=str,
)
def test_an_option_takes_the_same_words(text, expected):
    assert parse_day(text, TODAY) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-02-30", "2026-13", "3/4/2026", "0000", "20261116", "yesterday evening-ish", "x" * 5000]
)
def test_an_option_that_names_no_day_says_what_is_accepted(text):
    with pytest.raises(QueryError, match="not a day or a time") as raised:
        parse_day(text, TODAY)
    assert "2026-02-03" in raised.value.hint
    assert "last week" in raised.value.hint
    assert len(raised.value.message) < 200


# --- whatever is typed -------------------------------------------------------------------------


def spelled(*patterns: str) -> list[str]:
    """Return the words of patterns, some of them whole."""
    return re.sub(r"\\[a-z]|\(\?P?[<:!=]+(?:words>)?|[^\w '’-]+", " ", " ".join(patterns)).split()


PIECES = sorted(
    {word for language in LANGUAGES.values() for group in language.months for word in group.split()}
    | {word for language in LANGUAGES.values() for group in language.weekdays for word in group.split()}
    | {word for language in LANGUAGES.values() for word in (*language.numbers, *language.units)}
    | {"since", "before", "after", "until", "between", "and", "from", "to", "in", "last", "ago", "seit", "vor"}
    | {"年", "月", "日", "十月", "三天前"}
    | {word for language in LANGUAGES.values() for phrase in language.days for word in spelled(phrase)}
    | {word for language in LANGUAGES.values() for phrase in language.periods for word in spelled(phrase)}
    | {word for language in LANGUAGES.values() for group in language.orders.values() for word in spelled(*group)}
    | {"decision", "Entscheidung", "réunion", "reunión", "reunião", "il y a", "hace", "há", "在", "に", "에"}
    | {word for language in LANGUAGES.values() for word in re.split("[|]", language.prepositions)}
    | {"yesterday", "last week", "3", "31", "2026", "1999", "2026-02-29", "-", ".", "/", "前", "以降", "전", "부터"}
)  # fmt: skip
TEXTS = (
    st.text()
    | st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join)
    | st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
)


@given(TEXTS, st.dates())
def test_any_text_gives_nothing_or_days_in_order(text, today):
    reading = read_time(text, today)
    if reading is not None:
        assert reading.since or reading.until or reading.order
        assert reading.since is None or reading.until is None or reading.since <= reading.until
        assert reading.words
        assert reading.meaning.startswith(" ".join(reading.words.split()))


@given(TEXTS, st.dates())
def test_any_option_gives_a_day_or_an_error(text, today):
    try:
        named = parse_day(text, today)
    except QueryError:
        return
    first, last = (named, named) if isinstance(named, date) else named
    assert first <= last


@pytest.mark.parametrize("query", [*(case[0] for case in (*CERTAIN, *UNCERTAIN)), *NEWEST, *OLDEST])
def test_a_search_does_not_skip_what_could_be_read(query):
    assert time_reading(query, TODAY) == read_time(query, TODAY)
    assert time_reading(query.upper(), TODAY) == read_time(query.upper(), TODAY)
    decomposed = unicodedata.normalize("NFD", query)
    assert time_reading(decomposed, TODAY) == read_time(decomposed, TODAY)


@given(TEXTS, st.dates())
def test_a_search_reads_any_text_alike(text, today):
    assert time_reading(text, today) == read_time(text, today)
