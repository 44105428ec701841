"""How eight languages speak of days: words and phrases by language, as data for `time_moments` and `time_words`.

Latin words are written without accents and in lower case, as the query is when it is compared. In phrases a blank
stands for any white space, `{name}` for a word of that kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Unit = Literal["day", "week", "month", "quarter", "year"]
Bound = Literal["since", "after", "before", "until"]
Kind = Literal[
    "day_month", "month_day", "month_year", "month_of_year", "last_month", "this_month", "quarter",
    "ago", "past", "weekday_of_week", "last_weekday", "this_weekday", "month", "weekday", "year",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of one language."""

    months: tuple[str, ...]  # from January; alternatives are parted by blanks
    weekdays: tuple[str, ...]  # from Monday
    days: Mapping[str, int]  # phrase -> days from today
    periods: Mapping[str, tuple[Unit, int]]  # phrase -> which one, counted from the present one
    units: Mapping[str, Unit]  # with their plurals
    numbers: Mapping[str, int]
    phrases: Mapping[Kind, tuple[str, ...]]
    before: Mapping[str, Bound]  # words in front of a date that make it a bound
    after: Mapping[str, Bound] = field(default_factory=dict)  # words behind it that do
    ranges: tuple[tuple[str, str, str], ...] = ()  # in front of the first date, between the two, behind the second
    prepositions: str = ""  # words in front of a month, year or weekday that make it a time
    spaced: bool = True  # words are parted by blanks
    also_words: frozenset[str] = frozenset()  # months that are other words as well, in this language or in English


def _counted(words: str) -> dict[str, int]:
    """Return the numbers from 1 on; alternatives are parted by a slash."""
    groups = enumerate(words.split(), start=1)
    return {word: number for number, group in groups for word in group.split("/")}


ENGLISH = Vocabulary(
    months=(
        "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
        "september sept sep", "october oct", "november nov", "december dec",
    ),
    weekdays=("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    days={
        "(?:the )?day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0,
        "this (?:morning|afternoon|evening)": 0,
    },
    periods={
        "last week": ("week", -1), "this week": ("week", 0), "last month": ("month", -1), "this month": ("month", 0),
        "last quarter": ("quarter", -1), "this quarter": ("quarter", 0), "last year": ("year", -1),
        "this year": ("year", 0), "(?:the )?week before last": ("week", -2), "(?:the )?month before last": ("month", -2),
        "(?:the )?year before last": ("year", -2),
    },
    units={
        "days": "day", "day": "day", "weeks": "week", "week": "week", "months": "month", "month": "month",
        "quarters": "quarter", "quarter": "quarter", "years": "year", "year": "year",
    },
    numbers=_counted("one/an/a two three four five six seven eight nine ten eleven twelve") | {"a couple of": 2},
    phrases={
        "day_month": ("{days}(?:st|nd|rd|th)? (?:of )?{month}(?:,? (?:of )?{year})?",),
        "month_day": ("{month}[.]? {days}(?P<sure>st|nd|rd|th)?(?:,? {year})?",),
        "month_year": ("{month}[.]?,? (?:of )?{year}",),
        "month_of_year": ("{month} (?:of )?(?P<offset>last|this) year",),
        "last_month": ("last {month}",),
        "this_month": ("this {month}",),
        "quarter": ("q{quarter}[ /-]?{year}", "{year}[ /-]?q{quarter}", "q{quarter} of {year}", "q{quarter}"),
        "ago": ("{n} {unit} ago",),
        "past": ("(?:last|past) {n} {unit}", "past {unit}"),
        "weekday_of_week": ("{weekday} (?:of )?last week",),
        "last_weekday": ("last {weekday}", "{weekday} last"),
        "this_weekday": ("this {weekday}",),
        "month": ("{month}",),
        "weekday": ("{weekday}",),
    },
    before={
        "since": "since", "ever since": "since", "starting": "since", "starting (?:on|in|from)": "since",
        "as of": "since", "on or after": "since", "not before": "since", "after": "after", "later than": "after",
        "before": "before", "earlier than": "before", "prior to": "before", "until": "until", "till": "until",
        "up to": "until", "through": "until", "not after": "until", "no later than": "until",
    },
    after={
        "onwards?": "since", "and (?:later|after)": "since", "or (?:later|after)": "since",
        "and (?:earlier|before)": "until", "or (?:earlier|before)": "until",
    },
    ranges=(
        ("between", "and", ""), ("from", "(?:to|until|till|through|-|–)", ""), ("", "(?:to|until|through|-|–|[.]{2,3})", ""),
    ),
    prepositions="in|during|throughout|on|from|early|late|mid|early in|late in|(?:start|beginning|middle|end) of|month of|year",
    also_words=frozenset({"march", "mar", "may"}),
)  # fmt: skip

GERMAN = Vocabulary(
    months=(
        "januar janner", "februar", "marz maerz", "april", "mai", "juni", "juli", "august", "september", "oktober",
        "november", "dezember",
    ),
    weekdays=("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag sonnabend", "sonntag"),
    days={
        "vorgestern": -2, "gestern(?: abend)?": -1, "heute": 0, "heute (?:morgen|fruh|mittag|nachmittag|abend)": 0,
    },
    periods={
        "(?:letzte|letzter|letzten|vorige|vorigen|vergangene|vergangenen) woche": ("week", -1),
        "diese[r]? woche": ("week", 0),
        "(?:letzten|letzter|letztem|letztes|vorigen|vergangenen) monat": ("month", -1),
        "diese[mnr] monat": ("month", 0),
        "(?:letztes|letzten|letztem|voriges|vorigen|vergangenes|vergangenen) jahr": ("year", -1),
        "diese[ms] jahr": ("year", 0), "vorletzte[rn]? woche": ("week", -2),
        "(?:letztes|letzten|letztem|voriges|vorigen) quartal": ("quarter", -1), "diese[ms] quartal": ("quarter", 0),
    },
    units={
        "tagen": "day", "tage": "day", "tag": "day", "wochen": "week", "woche": "week", "monaten": "month",
        "monate": "month", "monat": "month", "jahren": "year", "jahre": "year", "jahr": "year",
    },
    numbers=_counted("einem/einer/ein/eine zwei drei vier funf sechs sieben acht neun zehn elf zwolf"),
    phrases={
        "day_month": ("{days}[.]? ?{month}(?:,? {year})?",),
        "month_year": ("{month} {year}",),
        "month_of_year": ("{month} (?P<offset>letzten|vorigen|vergangenen|diesen) jahres",),
        "last_month": ("(?:letzten|letzter|vergangenen|vorigen) {month}",),
        "quarter": ("{quarter}[.]? quartal {year}", "{quarter}[.] quartal"),
        "ago": ("vor {n} {unit}",),
        "past": ("(?:letzten|letzte|vergangenen|vergangene) {n} {unit}",),
        "last_weekday": ("(?:letzten|letzter|vergangenen|vorigen) {weekday}",),
        "this_weekday": ("diesen {weekday}",),
        "month": ("{month}",),
        "weekday": ("{weekday}",),
    },
    before={
        "seit(?: dem| der)?": "since", "ab(?: dem)?": "since", "nach(?: dem| der)?": "after",
        "vor(?: dem| der)?": "before", "bis(?: zum| zur)?": "until",
    },
    ranges=(("zwischen(?: dem)?", "und(?: dem)?", ""), ("(?:von|vom)", "(?:bis|bis zum)", ""), ("", "bis(?: zum)?", "")),
    prepositions="im|in|am|vom|wahrend|anfang|mitte|ende|im jahr|im jahre|seit",
)  # fmt: skip

FRENCH = Vocabulary(
    months=(
        "janvier", "fevrier", "mars", "avril", "mai", "juin", "juillet", "aout", "septembre", "octobre", "novembre",
        "decembre",
    ),
    weekdays=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    days={"avant[ -]?hier": -2, "hier(?: soir)?": -1, "aujourd['’ ]?hui": 0, "ce (?:matin|soir)": 0},
    periods={
        "(?:la )?semaine (?:derniere|passee)": ("week", -1), "cette semaine": ("week", 0),
        "(?:le )?mois (?:dernier|passe)": ("month", -1), "ce mois(?:-ci)?": ("month", 0),
        "(?:l['’])?(?:an dernier|annee derniere|an passe|annee passee)": ("year", -1), "cette annee": ("year", 0),
        "(?:le )?trimestre dernier": ("quarter", -1), "ce trimestre": ("quarter", 0),
    },
    units={
        "jours": "day", "jour": "day", "semaines": "week", "semaine": "week", "mois": "month", "annees": "year",
        "annee": "year", "ans": "year", "an": "year",
    },
    numbers=_counted("un/une deux trois quatre cinq six sept huit neuf dix onze douze"),
    phrases={
        "day_month": ("{days}(?:er)? {month}(?: {year})?",),
        "month_year": ("{month} {year}",),
        "month_of_year": ("{month} (?:de )?(?P<offset>l['’]an dernier|l['’]annee derniere|cette annee)",),
        "last_month": ("{month} dernier",),
        "quarter": ("t{quarter} {year}", "{quarter}(?:er|e|eme) trimestre(?: de)? {year}"),
        "ago": ("il y a {n} {unit}",),
        "past": ("{n} derni(?:ers|eres) {unit}", "(?:ces )?{n} {unit} derni(?:ers|eres)"),
        "last_weekday": ("{weekday} (?:dernier|passe)",),
        "this_weekday": ("ce {weekday}",),
        "month": ("{month}",),
        "weekday": ("{weekday}",),
    },
    before={
        "depuis(?: le| la)?": "since", "a partir (?:de|du)": "since", "des(?: le)?": "since", "apres(?: le| la)?": "after",
        "avant(?: le| la)?": "before", "jusqu['’ ]?(?:a|au|en|a la)": "until",
    },
    ranges=(("entre(?: le)?", "et(?: le)?", ""), ("(?:du|de|depuis)", "(?:au|a|jusqu['’ ]?(?:au|a))", "")),
    prepositions="en|durant|pendant|au mois de|fin|debut|mi|le|depuis",
    also_words=frozenset({"mars"}),
)  # fmt: skip

SPANISH = Vocabulary(
    months=(
        "enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre setiembre", "octubre",
        "noviembre", "diciembre",
    ),
    weekdays=("lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo"),
    days={"antes de ayer": -2, "anteayer": -2, "ayer": -1, "anoche": -1, "hoy": 0, "esta (?:manana|tarde|noche)": 0},
    periods={
        "(?:la )?semana pasada": ("week", -1), "(?:la )?ultima semana": ("week", -1), "esta semana": ("week", 0),
        "(?:el )?mes pasado": ("month", -1), "este mes": ("month", 0), "(?:el )?ano pasado": ("year", -1),
        "este ano": ("year", 0), "(?:el )?trimestre pasado": ("quarter", -1), "este trimestre": ("quarter", 0),
    },
    units={
        "dias": "day", "dia": "day", "semanas": "week", "semana": "week", "meses": "month", "mes": "month",
        "anos": "year", "ano": "year",
    },
    numbers=_counted("un/una/uno dos tres cuatro cinco seis siete ocho nueve diez once doce"),
    phrases={
        "day_month": ("{days} de {month}(?:,? (?:de |del )?{year})?",),
        "month_year": ("{month} (?:de |del )?{year}",),
        "month_of_year": ("{month} (?P<offset>del ano pasado|de este ano)",),
        "last_month": ("{month} pasado",),
        "quarter": ("t{quarter} (?:de )?{year}",),
        "ago": ("hace {n} {unit}", "{n} {unit} atras"),
        "past": ("(?:los|las) ultim[oa]s {n} {unit}", "ultim[oa]s {n} {unit}"),
        "last_weekday": ("{weekday} pasado", "pasado {weekday}"),
        "this_weekday": ("este {weekday}",),
        "month": ("{month}",),
        "weekday": ("{weekday}",),
    },
    before={
        "desde(?: el| la)?": "since", "a partir de(?:l)?": "since", "despues de(?:l)?": "after", "tras(?: el)?": "after",
        "antes de(?:l)?": "before", "hasta(?: el| la)?": "until",
    },
    ranges=(("entre(?: el)?", "y(?: el)?", ""), ("(?:del|desde(?: el)?|de)", "(?:al|a|hasta(?: el)?)", "")),
    prepositions="en|durante|el|en el mes de|en el ano|a (?:principios|mediados|finales) de",
    also_words=frozenset({"mayo"}),
)  # fmt: skip

PORTUGUESE = Vocabulary(
    months=(
        "janeiro", "fevereiro", "marco", "abril", "maio", "junho", "julho", "agosto", "setembro", "outubro",
        "novembro", "dezembro",
    ),
    weekdays=(
        "segunda-feira", "terca-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sabado", "domingo",
    ),
    days={"anteontem": -2, "ontem(?: a noite)?": -1, "hoje": 0, "esta (?:manha|tarde|noite)": 0},
    periods={
        "(?:na |a )?semana passada": ("week", -1), "(?:na )?ultima semana": ("week", -1),
        "(?:n?esta|essa) semana": ("week", 0), "(?:no |o )?mes passado": ("month", -1), "n?este mes": ("month", 0),
        "(?:no |o )?ano passado": ("year", -1), "n?este ano": ("year", 0),
        "(?:no )?trimestre passado": ("quarter", -1), "n?este trimestre": ("quarter", 0),
    },
    units={
        "dias": "day", "dia": "day", "semanas": "week", "semana": "week", "meses": "month", "mes": "month",
        "anos": "year", "ano": "year",
    },
    numbers=_counted("um/uma dois/duas tres quatro cinco seis sete oito nove dez onze doze"),
    phrases={
        "day_month": ("{days} de {month}(?:,? (?:de )?{year})?",),
        "month_year": ("{month} (?:de )?{year}",),
        "month_of_year": ("{month} (?P<offset>do ano passado|deste ano)",),
        "last_month": ("{month} passado",),
        "quarter": ("t{quarter} (?:de )?{year}", "{quarter}[oº]? trimestre de {year}"),
        "ago": ("ha {n} {unit}", "(?:ha )?{n} {unit} atras", "faz {n} {unit}"),
        "past": ("(?:nos |nas )?ultim[oa]s {n} {unit}",),
        "last_weekday": ("{weekday} passad[ao]", "(?:na )?ultima {weekday}"),
        "this_weekday": ("n?esta {weekday}",),
        "month": ("{month}",),
        "weekday": ("{weekday}",),
    },
    before={
        "desde(?: o| a)?": "since", "a partir d[eoa]": "since", "depois d[eoa]": "after", "apos(?: o| a)?": "after",
        "antes d[eoa]": "before", "ate(?: o| a| ao)?": "until",
    },
    ranges=(("entre(?: o)?", "e(?: o)?", ""), ("(?:de|do|desde)", "(?:a|ao|ate(?: o)?)", "")),
    prepositions="em|durante|na|no|no mes de|no ano de|(?:no inicio|em meados|no fim|no final) de",
    also_words=frozenset({"marco"}),
)  # fmt: skip

_HAN_NUMBERS = {
    "一": 1,
    "二": 2,
    "两": 2,
    "兩": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "十": 10,
}

CHINESE = Vocabulary(
    months=tuple(f"{han}月" for han in "一 二 三 四 五 六 七 八 九 十 十一 十二".split()),
    weekdays=tuple(
        " ".join(word + day for word in ("星期", "周", "週", "礼拜", "禮拜") for day in days)
        for days in ("一", "二", "三", "四", "五", "六", "日天")
    ),
    days={"前天": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "今天": 0, "今日": 0, "今早": 0, "今晚": 0},
    periods={
        "上(?:周|週|个星期|個星期|星期|礼拜|个礼拜)": ("week", -1), "(?:本周|本週|这周|這週|这个星期|這個星期|这星期)": ("week", 0),
        "上(?:个月|個月|月)": ("month", -1), "(?:本月|这个月|這個月)": ("month", 0), "去年": ("year", -1),
        "今年": ("year", 0), "前年": ("year", -2), "上(?:个|個)?季度": ("quarter", -1), "(?:本|这个|這個)季度": ("quarter", 0),
    },
    units={
        "天": "day", "日": "day", "个星期": "week", "個星期": "week", "星期": "week", "周": "week", "週": "week",
        "个月": "month", "個月": "month", "年": "year",
    },
    numbers=_HAN_NUMBERS,
    phrases={
        "day_month": ("(?:{year} ?年 ?)?{month_number} ?月 ?{day} ?[日号號]",),
        "month_year": ("{year} ?年 ?{month_number} ?月份?", "{year} ?年 ?{month}份?"),
        "month_of_year": ("(?P<offset>去年|今年|前年)的?(?:{month_number} ?月|{month})份?",),
        "quarter": ("{year} ?年 ?(?:第)?{quarter} ?季度", "{year} ?年 ?q{quarter}"),
        "ago": ("{n} ?{unit}(?:以|之)?前",),
        "past": ("(?:最近|过去|過去|近){n} ?{unit}",),
        "weekday_of_week": ("上(?P<weekday_of>(?:周|週|星期|礼拜|禮拜)[一二三四五六日天])",),
        "month": ("{month_number} ?月份?(?![日号號0-9])", "{month}份"),
        "year": ("{year} ?年(?! ?[0-9])",),
    },
    before={"自": "since", "自从": "since", "自從": "since", "截至": "until", "直到": "until"},
    after={
        "(?:以来|以來|开始|開始|起)": "since", "(?:之后|之後|以后|以後|后|後)": "after", "(?:之前|以前|前)": "before",
        "(?:为止|為止)": "until",
    },
    ranges=(("(?:从|從|在|自)?", "(?:到|至|和|与|與|-|–|~|～)", "(?:之间|之間|期间|期間)?"),),
    spaced=False,
)  # fmt: skip

JAPANESE = Vocabulary(
    months=("",) * 12,
    weekdays=tuple(f"{day}曜日 {day}曜" for day in "月火水木金土日"),
    days={
        "一昨日": -2, "おととい": -2, "昨日": -1, "きのう": -1, "昨夜": -1, "昨晩": -1, "今日": 0, "本日": 0, "今朝": 0,
    },
    periods={
        "先週": ("week", -1), "今週": ("week", 0), "先々週": ("week", -2), "先月": ("month", -1), "今月": ("month", 0),
        "先々月": ("month", -2), "去年": ("year", -1), "昨年": ("year", -1), "今年": ("year", 0), "一昨年": ("year", -2),
        "前四半期": ("quarter", -1), "今四半期": ("quarter", 0),
    },
    units={
        "日間": "day", "日": "day", "週間": "week", "か月": "month", "ヶ月": "month", "カ月": "month", "ヵ月": "month",
        "箇月": "month", "年": "year",
    },
    numbers=_HAN_NUMBERS,
    phrases={
        "day_month": ("(?:{year} ?年 ?)?{month_number} ?月 ?{day} ?日",),
        "month_year": ("{year} ?年 ?{month_number} ?月",),
        "month_of_year": ("(?P<offset>去年|昨年|今年|一昨年)の?{month_number} ?月",),
        "quarter": ("{year} ?年 ?(?:第)?{quarter} ?四半期",),
        "ago": ("{n} ?{unit}前",),
        "past": ("(?:過去|この|直近){n} ?{unit}",),
        "weekday_of_week": ("先週の?{weekday}",),
        "last_weekday": ("(?:この前|前)の{weekday}",),
        "month": ("{month_number} ?月(?![0-9日])",),
        "weekday": ("{weekday}(?=に)",),
        "year": ("{year} ?年(?! ?[0-9])",),
    },
    before={},
    after={"(?:以降|以来|から)": "since", "(?:より後|の後)": "after", "(?:より前|の前|以前|前)": "before", "まで": "until"},
    ranges=(("", "(?:から|と|-|–|~|～|〜)", "(?:まで|の間)?"),),
    spaced=False,
)  # fmt: skip

KOREAN = Vocabulary(
    months=("",) * 12,
    weekdays=tuple(f"{day}요일" for day in "월화수목금토일"),
    days={"그저께": -2, "그제": -2, "어제": -1, "어젯밤": -1, "오늘": 0},
    periods={
        "지난 ?주(?!말)": ("week", -1), "저번 ?주": ("week", -1), "이번 ?주(?!말)": ("week", 0), "지지난 ?주": ("week", -2),
        "지난 ?달": ("month", -1), "저번 ?달": ("month", -1), "이번 ?달": ("month", 0), "작년": ("year", -1),
        "지난 ?해": ("year", -1), "올해": ("year", 0), "재작년": ("year", -2), "지난 ?분기": ("quarter", -1),
        "이번 ?분기": ("quarter", 0),
    },
    units={"일": "day", "주일": "week", "주": "week", "개월": "month", "달": "month", "년": "year"},
    numbers={"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10},
    phrases={
        "day_month": ("(?:{year} ?년 ?)?{month_number} ?월 ?{day} ?일",),
        "month_year": ("{year} ?년 ?{month_number} ?월",),
        "month_of_year": ("(?P<offset>작년|올해|재작년) ?{month_number} ?월",),
        "quarter": ("{year} ?년 ?{quarter} ?분기",),
        "ago": ("{n} ?{unit} ?전",),
        "past": ("(?:최근|지난) ?{n} ?{unit}",),
        "weekday_of_week": ("지난 ?주 ?{weekday}",),
        "last_weekday": ("지난 ?{weekday}",),
        "month": ("{month_number} ?월(?![0-9일요])",),
        "weekday": ("{weekday}(?=에)",),
        "year": ("{year} ?년(?! ?[0-9])",),
    },
    before={},
    after={"(?:부터|이래)": "since", "이후": "after", "(?:이전|전)": "before", "까지": "until"},
    ranges=(("", "(?:부터|에서|와|과|-|–|~)", "(?:까지|사이)?"),),
    spaced=False,
)  # fmt: skip

LANGUAGES: Mapping[str, Vocabulary] = {
    "en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH, "pt": PORTUGUESE,
    "zh": CHINESE, "ja": JAPANESE, "ko": KOREAN,
}  # fmt: skip

# What `offset` in a phrase of the kind `month_of_year` may say, in years from the present one.
YEAR_OFFSETS: Mapping[str, int] = {
    "last": -1, "this": 0, "letzten": -1, "vorigen": -1, "vergangenen": -1, "diesen": 0, "l'an dernier": -1,
    "l’an dernier": -1, "l'annee derniere": -1, "l’annee derniere": -1, "cette annee": 0, "del ano pasado": -1,
    "de este ano": 0, "do ano passado": -1, "deste ano": 0, "去年": -1, "昨年": -1, "今年": 0, "前年": -2, "一昨年": -2,
    "작년": -1, "올해": 0, "재작년": -2,
}  # fmt: skip
