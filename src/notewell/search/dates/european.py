"""Lists how English, German, French, Spanish and Portuguese speak of dates.

Words are in lower case and without accents, like the text they are compared with. In phrases a space matches any white
space, and `{name}` a word of that kind.
"""

from __future__ import annotations

from notewell.search.dates.vocabulary import Vocabulary


def _counted(words: str) -> dict[str, int]:
    """Return the numbers from 1 on; alternatives are separated by a slash."""
    groups = enumerate(words.split(), start=1)
    return {word: number for number, group in groups for word in group.split("/")}


# "Last name" and "first aid" have nothing to do with time.
_NOT_LAST = "(?:name|line|page|word|letter|digit|character|minute|mile|resort|straw|step|day)s?(?![a-z])"
_NOT_FIRST = (
    "(?:name|line|page|word|letter|digit|character|aid|class|floor|half|hand|month|order|person|quarter|rate|step|thing|"
    "week|year|day)s?(?![a-z])"
)

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
        "last week(?! of\\b)": ("week", -1), "this week": ("week", 0), "last month(?! of\\b)": ("month", -1),
        "this month": ("month", 0), "last quarter(?! of\\b)": ("quarter", -1), "this quarter": ("quarter", 0),
        "last year(?! of\\b)": ("year", -1), "this year": ("year", 0),
        "(?:the )?week before last": ("week", -2), "(?:the )?month before last": ("month", -2),
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
        "last_weekday": ("last {weekday}(?! of\\b)", "{weekday} last"),
        "this_weekday": ("this {weekday}",),
        "month": ("{month}",),
        "weekday": ("{weekday}",),
    },
    before={
        "since": "since", "ever since": "since", "starting": "since", "starting (?:on|in|from)": "since",
         "on or after": "since", "not before": "since", "after": "after", "later than": "after",
        "before": "before", "earlier than": "before", "prior to": "before", "until": "until", "till": "until",
        "up to": "until", "through": "until", "not after": "until", "no later than": "until",
    },
    after={
        "onwards?": "since", "and (?:later|after)": "since", "or (?:later|after)": "since",
        "and (?:earlier|before)": "until", "or (?:earlier|before)": "until",
    },
    ranges=(
        ("between", "and", ""), ("from", "(?:to|until|till|through|-|–)", ""),
        ("", "(?:to|until|through|-|–|[.]{2,3})", ""),
    ),
    cues="yesterday night today tonight morning afternoon evening q",
    prepositions=(
        "in|during|throughout|on|from|as of|early|late|mid|early in|late in|month of|year|in week|"
        "(?:start|beginning|middle|end) of"
    ),
    also_words=frozenset({"march", "mar", "may"}),
    records=(
        "(?:agreement|appointment|backup|bill|call|change|chat|check-?up|commit|contract|conversation|decision|deploy|"
        "deployment|discussion|draft|e-?mail|estimate|incident|interview|invoice|letter|log|mail|measurement|meeting|"
        "mention|message|note|offer|order|outage|payment|price|proposal|purchase|quote|reading|receipt|record|release|"
        "report|result|retro|review|session|stand-?up|talk|trip|update|version|visit)s?|entry|entries|status"
    ),
    orders={
        "newest": (
            r"newest", r"(?<!:)(?<!at\sthe\s)latest(?! (?:possible|tag))", "most recent(?:ly)?(?! used)",
            "last (?:time|known)",
            rf"(?<!first\sand\s)(?<!first\sor\s)last(?! {_NOT_LAST})(?= (?:(?:{{n}}|few) )?(?:[a-z-]+ )?{{record}})",
            f"when (?:did|was|were|has|have|had) (?:[a-z'’-]+ ){{1,4}}?(?P<words>last)(?! {_NOT_LAST})",
        ),
        "oldest": (
            "(?:oldest|earliest)(?= (?:{n} )?(?:[a-z-]+ )?{record})", "first time",
            f"first(?! {_NOT_FIRST})(?= (?:[a-z-]+ )?{{record}})",
        ),
    },
    order_cues=("newest", "latest", "recent", "last", "oldest", "earliest", "first"),
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
    ranges=(
        ("zwischen(?: dem)?", "und(?: dem)?", ""), ("(?:von|vom)", "(?:bis|bis zum)", ""), ("", "bis(?: zum)?", ""),
    ),
    cues="gestern vorgestern heute quartal jahres",
    prepositions="im|in|am|vom|wahrend|anfang|mitte|ende|im jahr|im jahre|seit",
    records=(
        "[a-z]*(?:anderung|angebot|anruf|bericht|beschluss|besprechung|bestellung|besuch|call|eintrag|entscheidung|ergebnis|"
        "gesprach|lieferung|mail|meeting|meldung|messung|nachricht|notiz|preis|protokoll|rechnung|release|sitzung|telefonat|"
        "termin|treffen|untersuchung|update|vereinbarung|version|vertrag|zahlung)[a-z]{0,3}|(?:sach)?stand|reisen?|urlaube?"
    ),
    orders={
        "newest": (
            "(?:neueste|neuste|aktuellste)[mnrs]?", r"(?<!nicht\s)zuletzt", "letzte[ns]? mal",
            "(?:letzte|jungste)[mnrs]?(?= (?:{n} )?(?:[a-z]+e[mnrs]? )?{record})",
        ),
        "oldest": (
            "erste[ns]? mal", "erstmals", "ae?lteste[mnrs]?(?= (?:[a-z]+e[mnrs]? )?{record})",
            "(?:erste|fruheste|fruehste|fruhste)[mnrs]?(?= (?:[a-z]+e[mnrs]? )?{record})",
        ),
    },
    order_cues=("neuest", "neust", "aktuellst", "zuletzt", "letzte", "jungste", "erste", "erstmals", "lteste", "fru"),
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
        "depuis(?: le| la)?": "since", "a partir (?:de|du)": "since", "des(?: le)?": "since",
        "apres(?: le| la)?": "after",
        "avant(?: le| la)?": "before", "jusqu['’ ]?(?:a|au|en|a la)": "until",
    },
    ranges=(("entre(?: le)?", "et(?: le)?", ""), ("(?:du|de|depuis)", "(?:au|a|jusqu['’ ]?(?:au|a))", "")),
    cues="hier aujourd hui matin soir trimestre t y dernier passe",
    prepositions="en|durant|pendant|au mois de|fin|debut|mi|le|depuis",
    also_words=frozenset({"mars"}),
    # "Hier" is German, too.
    not_among=frozenset("das der die eine gibt hat ich im ist nicht sind und von war was wer wie wir wo".split()),
    records=(
        "(?:achat|appel|changement|commande|compte-rendu|contrat|conversation|courriel|decision|discussion|echange|e-?mail|"
        "entree|facture|lettre|livraison|mail|message|mesure|modification|note|offre|paiement|rapport|resultat|reunion|"
        "seance|session|version|visite|voyage)s?|compte rendu|devis|mises? a jour|nouvelles|prix|rendez-?vous"
    ),
    orders={
        "newest": (
            "plus recente?s?", "plus recemment", "derniere fois", "derni(?:er|ere)s?(?= (?:{n} )?{record})",
        ),
        "oldest": (
            "premiere fois", "premi(?:er|ere)s?(?= {record})", "plus ancien(?:ne)?s?(?= {record})",
            "{record}(?: [a-z'’-]+){0,3} (?P<words>(?:le|la|les) plus ancien(?:ne)?s?)",
        ),
    },
    order_cues=("plus", "derni", "premi"),
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
        "desde(?: el| la)?": "since", "a partir de(?:l)?": "since", "despues de(?:l)?": "after",
        "tras(?: el)?": "after",
        "antes de(?:l)?": "before", "hasta(?: el| la)?": "until",
    },
    ranges=(("entre(?: el)?", "y(?: el)?", ""), ("(?:del|desde(?: el)?|de)", "(?:al|a|hasta(?: el)?)", "")),
    cues="ayer anteayer anoche hoy manana tarde noche trimestre t",
    prepositions="en|durante|el|en el mes de|en el ano|a (?:principios|mediados|finales) de",
    also_words=frozenset({"mayo"}),
    records=(
        "(?:acuerdo|cambio|carta|charla|cita|compra|contrato|correo|e-?mail|entrada|entrega|factura|informe|llamada|"
        "mensaje|nota|oferta|pago|pedido|precio|presupuesto|resultado|viaje|visita)s?|"
        "(?:actualizacion|conversacion|decision|reunion|sesion|version)(?:es)?"
    ),
    orders={
        "newest": (
            "mas recientes?", "mas recientemente", "mas nuev[oa]s?", "ultima vez", "ultim[oa]s?(?= (?:{n} )?{record})",
        ),
        "oldest": (
            "primera vez", "primer[oa]?s?(?= {record})", "mas antigu[oa]s?(?= {record})",
            "{record}(?: [a-z-]+){0,3} (?P<words>mas antigu[oa]s?)",
        ),
    },
    order_cues=("mas", "ultim", "primer"),
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
    cues="ontem anteontem hoje manha tarde noite trimestre t",
    prepositions="em|durante|na|no|no mes de|no ano de|(?:no inicio|em meados|no fim|no final) de",
    also_words=frozenset({"marco"}),
    records=(
        "(?:acordo|carta|chamada|compra|consulta|contrato|conversa|e-?mail|entrada|entrega|fatura|mudanca|nota|oferta|"
        "pagamento|pedido|preco|relatorio|resultado|visita)s?|"
        "(?:atualizac|decis|ligac|reuni|sess|vers)(?:ao|oes)|(?:mensage|viage)(?:m|ns)"
    ),
    orders={
        "newest": ("mais recentes?", "mais recentemente", "ultima vez", "ultim[oa]s?(?= (?:{n} )?{record})"),
        "oldest": (
            "primeira vez", "primeir[oa]s?(?= {record})", "mais antig[oa]s?(?= {record})",
            "{record}(?: [a-z-]+){0,3} (?P<words>mais antig[oa]s?)",
        ),
    },
    order_cues=("mais", "ultim", "primeir"),
)  # fmt: skip
