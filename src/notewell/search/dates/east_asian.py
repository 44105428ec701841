"""Lists how Chinese, Japanese and Korean speak of dates; phrases are written as in `european`."""

from __future__ import annotations

from notewell.search.dates.vocabulary import Vocabulary

_HAN_NUMBERS = {han: number for number, han in enumerate("一二三四五六七八九十", start=1)} | {"两": 2, "兩": 2}

_NO_YEAR = "(?!(?:19|20)[0-9]{2} ?[年년])"  # before 1970, not 1970 years ago

CHINESE = Vocabulary(
    months=tuple(f"{han}月" for han in "一 二 三 四 五 六 七 八 九 十 十一 十二".split()),
    weekdays=tuple(
        " ".join(word + day for word in ("星期", "周", "週", "礼拜", "禮拜") for day in days)
        for days in ("一", "二", "三", "四", "五", "六", "日天")
    ),
    days={"前天": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "今天": 0, "今日": 0, "今早": 0, "今晚": 0},
    periods={
        "上(?:周|週|个星期|個星期|星期|礼拜|个礼拜)": ("week", -1),
        "(?:本周|本週|这周|這週|这个星期|這個星期|这星期)": ("week", 0),
        "上(?:个月|個月|月)": ("month", -1), "(?:本月|这个月|這個月)": ("month", 0), "去年": ("year", -1),
        "今年": ("year", 0), "前年": ("year", -2), "上(?:个|個)?季度": ("quarter", -1),
        "(?:本|这个|這個)季度": ("quarter", 0),
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
        "ago": (_NO_YEAR + "{n} ?{unit}(?:以|之)?前",),
        "past": ("(?:最近|过去|過去|近){n} ?{unit}",),
        "weekday_of_week": ("上{weekday}",),
        "month": (
            "{month_number} ?月份?(?![日号號0-9])", "{month}份", "[在于於]{month}(?!天)",
            "{month}(?=以来|以來|以前|以后|以後|之前|之后|之後|里|裡)",
        ),
        "year": ("{year} ?年(?! ?[0-9]|[代间間])",),
    },
    before={"自": "since", "自从": "since", "自從": "since", "截至": "until", "直到": "until"},
    after={
        "(?:以来|以來|开始|開始|起)": "since", "(?:之后|之後|以后|以後|后|後)": "after", "(?:之前|以前|前)": "before",
        "(?:为止|為止)": "until",
    },
    ranges=(("(?:从|從|在|自)?", "(?:到|至|和|与|與|-|–|~|～)", "(?:之间|之間|期间|期間)?"),),
    spaced=False,
    orders={  # 最近 alone is "recently", or "nearest"
        "newest": ("最新的?", "最近的?一[次条條封篇个個笔筆份]", "最[后後]一次", "上一?次"),
        "oldest": ("最早的?", "最[旧舊]的?", "第一次"),
    },
    order_cues=("最", "上", "第一次"),
)  # fmt: skip

JAPANESE = Vocabulary(
    months=("",) * 12,
    weekdays=tuple(f"{day}曜日 {day}曜" for day in "月火水木金土日"),
    days={
        "一昨日": -2, "おととい": -2, "昨日": -1, "きのう": -1, "昨夜": -1, "昨晩": -1, "今日": 0, "本日": 0, "今朝": 0,
    },
    periods={
        "先週": ("week", -1), "今週": ("week", 0), "先々週": ("week", -2), "先月": ("month", -1), "今月": ("month", 0),
        "先々月": ("month", -2), "去年": ("year", -1), "昨年": ("year", -1), "今年": ("year", 0),
        "一昨年": ("year", -2),
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
        "ago": (_NO_YEAR + "{n} ?{unit}前",),
        "past": ("(?:過去|この|直近){n} ?{unit}",),
        "weekday_of_week": ("先週の?{weekday}",),
        "last_weekday": ("(?:この前|前)の{weekday}",),
        "month": ("{month_number} ?月(?![0-9日])",),
        "weekday": ("{weekday}(?=に)",),
        "year": ("{year} ?年(?! ?[0-9]|[代间間])",),
    },
    before={},
    after={
        "(?:以降|以来|から)": "since", "(?:より後|の後)": "after", "(?:より前|の前|以前|前)": "before", "まで": "until",
    },
    ranges=(("", "(?:から|と|-|–|~|～|〜)", "(?:まで|の間)?"),),
    spaced=False,
    orders={
        "newest": (
            "最新", "最近の", "直近の", "(?:一番|最も|もっとも)新しい", "前回", "(?P<words>最後に)[^。？?]{1,30}いつ",
            "いつ(?P<words>最後に)",
        ),
        "oldest": (
            "最初の", "(?:一番|最も|もっとも)古い", "最古の", "初めて(?!の)", "(?P<words>最初に)[^。？?]{1,30}いつ",
            "いつ(?P<words>最初に)",
        ),
    },
    order_cues=("最", "直近", "一番", "もっとも", "前回", "初めて"),
)  # fmt: skip

KOREAN = Vocabulary(
    months=("",) * 12,
    weekdays=tuple(f"{day}요일" for day in "월화수목금토일"),
    days={"그저께": -2, "그제": -2, "어제": -1, "어젯밤": -1, "오늘": 0},
    periods={
        "지난 ?주(?!말)": ("week", -1), "저번 ?주": ("week", -1), "이번 ?주(?!말)": ("week", 0),
        "지지난 ?주": ("week", -2),
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
        "ago": (_NO_YEAR + "{n} ?{unit} ?전",),
        "past": ("(?:최근|지난) ?{n} ?{unit}",),
        "weekday_of_week": ("지난 ?주 ?{weekday}",),
        "last_weekday": ("지난 ?{weekday}",),
        "month": ("{month_number} ?월(?![0-9일요])",),
        "weekday": ("{weekday}(?=에)",),
        "year": ("{year} ?년(?! ?[0-9]|대|간)",),
    },
    before={},
    after={"(?:부터|이래)": "since", "이후": "after", "(?:이전|전)": "before", "까지": "until"},
    ranges=(("", "(?:부터|에서|와|과|-|–|~)", "(?:까지|사이)?"),),
    spaced=False,
    records="회의|결정|통화|대화|메모|노트|기록|메일|메시지|방문|여행|주문|결제|청구서|가격|견적|버전|업데이트|보고서|진료",
    orders={
        "newest": (
            "최신", "(?:가장|제일) ?최근", "지난번", "마지막(?= ?(?:{record}))",
            "(?P<words>마지막으로)[^.?!]{1,30}언제", "언제 ?(?P<words>마지막으로)",
        ),
        "oldest": (
            "(?:가장|제일) ?오래 ?된", "(?:가장|제일) ?이른", "맨 ?처음", "처음으로", "최초의?",
            "첫(?: ?번째)?(?= ?(?:{record}))",
        ),
    },
    order_cues=("최신", "최근", "지난번", "마지막", "오래", "이른", "처음", "최초", "첫"),
)  # fmt: skip
