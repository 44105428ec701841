"""Finds the function words (stop words) of a query in nine languages.

The tables hold closed classes only: articles, pronouns, prepositions, conjunctions, auxiliaries, question words and the
verbs of asking. The published lists (stopwordsiso 0.7.1 and stop-words 2025.11.4) also drop "home", "system",
"computer", "order" or "group", which people do search a memory for. English "may" is missing because
it is a month, and "who", "it" or "us" stay when they are written as acronyms.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from notewell.text.languages import language_of
from notewell.text.lexicon import fold, stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from notewell.text.lexicon import Word

_ENGLISH = "en"
_LEAST_EVIDENCE = 2  # words; one can be a name or a loan ("El Niño", "de facto"), so the whole question is looked at

_WORDS = {
    _ENGLISH: """
    a about above after again all also am an and any anyone anything are as at be because been before being below
    between both but by can could did do does doing done down during each else etc few for from further get gets got
    had has have having he her here hers herself him himself his how i if in into is it its itself just let lets like
    me might more most must my myself no nor not now of off on once only or other our ours ourselves out over own
    please said same say says shall she should so some someone something such tell than that the their theirs them
    themselves then there these they thing things this those through to too under until up us use used uses using very
    was we were what whatever when where whether which while who whom whose why will with would yes yet you your yours
    yourself yourselves dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt im ive id youre weve thats
    whats
    """,
    "es": """
    a al algo alguien algún alguna algunas alguno algunos ante antes aquel aquella aquellas aquello aquellos aquí así
    aunque bajo cada como cómo con contra cual cuál cuáles cuales cualquier cuando cuándo cuanta cuánta cuántas cuanto
    cuánto cuántos de del desde después dime dónde donde durante e el él ella ellas ello ellos en entonces entre era
    eran es esa esas ese eso esos esta está están estaba estaban estamos estar estas este esto estos estoy fue fueron
    ha había habían haber hacia han hasta hay he hemos la las le les lo los más me mi mí mis mientras muy nada ni no
    nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero por porque pues puede pueden
    puedo que qué quien quién quienes quiénes se sea según ser si sí sido siempre sin sobre son soy su sus también
    tanto te tener tengo ti tiene tienen tenía toda todas todo todos tu tú tus u un una unas uno unos usted ustedes y
    ya yo favor
    """,
    "pt": """
    a à às ao aos algo alguém algum alguma algumas alguns ante antes após aquela aquelas aquele aqueles aquilo as até
    cada com como contra da das de dela delas dele deles depois desde dessa desse desta deste diga do dos durante e é
    ela elas ele eles em enquanto então entre era eram essa essas esse esses esta está estão estamos estar estas
    estava estavam este estes estou eu foi foram há isso isto já lhe lhes mais mas me mesmo meu meus minha minhas
    muito na nas não nem no nos nós nossa nossas nosso nossos num numa o onde os ou outra outras outro outros para
    pela pelas pelo pelos por porque pode podem posso qual quais qualquer quando quanta quantas quanto quantos que quê
    quem se seja sem ser será seu seus si sido sim sobre sou sua suas também te tem têm tenho ter tinha toda todas
    todo todos tu tua tuas um uma umas uns você vocês favor
    """,
    "de": """
    aber alle allem allen aller alles als also am an andere anderen anderer anderes auch auf aus bei beim bin bis bist
    bitte da dabei dadurch dafür damit danach daran darauf daraus darf darin darüber das davon dazu dass daß dein
    deine deinem deinen deiner dem den denn der des deren dessen dich die dies diese diesem diesen dieser dieses dir
    doch dort du durch ein eine einem einen einer eines er es etwas euch euer eure für gegen gibt haben habe habt hast
    hat hatte hatten hattest hätte hätten hier hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in ins ist
    ja jede jedem jeden jeder jedes jene jenem jenen jener jenes jetzt kann kannst kein keine keinem keinen keiner
    können könnte könnten man mein meine meinem meinen meiner meines mich mir mit muss musst müssen nach nicht nichts
    noch nun nur ob oder ohne sag sage schon sehr seid sein seine seinem seinen seiner seines seit sich sie sind so
    solche solchem solchen solcher soll sollen sollte sondern sonst über um und uns unser unsere unserem unseren
    unserer unter vom von vor wann war waren warum was weil welche welchem welchen welcher welches wem wen wenn wer
    werde werden weshalb wessen wie wieder wieso will wir wird wirst wo woher wohin womit worden worüber wurde wurden
    würde würden zu zum zur zwischen
    """,
    "fr": """
    à afin ai ainsi après as au aucun aucune aussi autre autres aux avaient avait avant avec avez avoir avons ayant ça
    car ce ceci cela celle celles celui ces cet cette ceux cest chaque chez ci comme comment contre dans davant de
    depuis des dès dis dit donc dont du dun dune durant elle elles en encore entre es est et étaient était étant été
    être eu eux fut furent il ils jai je jusque la là laquelle le lequel les lesquelles lesquels leur leurs lors
    lorsque lui ma mais me même mes moi moins mon ne nest ni nos notre nous on ont ou où par parce parmi pas pendant
    peut peuvent plus pour pourquoi puis quand que quel quelle quelles quelque quelques quels quest quest-ce qui quil
    quils quoi quon sa sans se selon sera seront ses si sil sont sous suis sur ta te tes toi ton tous tout toute
    toutes très tu un une vers voici voilà vos votre vous y est-ce a-t-il a-t-elle y-a-t-il dis-moi
    """,
    "it": """
    a ad agli ai al alla alle allo alcuni alcune altra altre altri altro anche ancora avere aveva avevano che chi ci
    ciò coi col come con contro cosa cui da dagli dai dal dalla dalle dallo de degli dei del della delle dello dentro
    di dimmi dopo dove dovè due durante e è ed era erano essere fa fra già gli ha hai hanno ho i il in io la le lei li
    lo loro lui ma me mentre mi mia mie miei mio molto ne negli nei nel nella nelle nello no noi non nostra nostre
    nostri nostro o ogni oppure per perché perciò più poi prima può qual quale quali qualche quando quanta quante
    quanti quanto quella quelle quelli quello questa queste questi questo qui se sei senza si sia siamo sono sopra
    sotto sta stanno stata state stati stato su sua sue sugli sui sul sulla sulle sullo suo suoi te ti tra tu tua tue
    tuo tuoi tutta tutte tutti tutto un una uno vi voi vostra vostro
    """,
    "nl": """
    aan al alle alles als altijd andere anders ben bent bij daar dan dat de deze die dit doet door dus een en er geen
    haar had hadden heb hebben hebt heeft hem hen het hier hij hoe hoeveel hun ik in is ja jij je jou jouw jullie kan
    kun kunnen maar me meer men met mij mijn moet moeten na naar niet niets nog nu of om omdat onder ons onze ook op
    over sinds te tegen ten ter toch toen tot tussen u uit uw van vanaf veel vertel volgens voor waar waarom wanneer
    want waren was wat we wel welk welke werd werden wie wij wil worden wordt zal ze zelf zich zij zijn zo zonder zou
    zouden
    """,
    "ar": """
    من في على إلى الى عن مع هل ما ماذا متى أين اين كيف لماذا لما كم أي اي أية هذا هذه ذلك تلك هؤلاء الذي التي الذين هو
    هي هم هن أنا انا نحن أنت انت أنتم كان كانت يكون تكون كانوا ليس ليست لا لم لن قد لقد أن إن ان أو او و ف ثم بل لكن
    حتى إذا اذا لو كل بعض غير بين بعد قبل عند عندما منذ خلال حول تحت فوق أمام وراء منه منها فيه فيها عليه عليها إليه
    إليها به بها له لها لهم لي لك لنا كما أيضا ايضا فقط يا نعم
    """,
    "ru": """
    а без более бы был была были было быть в вам вас ваш ваша ваше ваши весь во вот все всё всего всех вы где да для
    до его ее её ей ему если есть еще ещё же за и из или им ими их к как какая какие какими каких какого какое какой
    каком какую когда кого ком кому кто куда ли либо мне меня много может могу можно мной мои мой моя моё мы на над
    надо нам нами нас наш наша наше наши не него нее неё ней нет ни них но ну о об он она они оно от откуда очень
    перед по под после потом потому почему при про с сам свой своя свои себя скажи сколько со так также такой там то
    того тоже той только том тот ту тут ты у уже чего чей чем через что чтобы чье чья эта эти это этого этой этом этот
    эту я
    """,
}
# Function words elsewhere that mean something in English: no evidence of the other language, but dropped once it won.
_MEANT_IN_ENGLISH = """
    ad ante ate bent bin car celle come comment die dis door due ed era favor han hast hat hay hem hen hoe io man men
    met mis mon nest non num op pas pendant per plus pour prima quest sage sea sera sin son state ten ton van vers
    want war
    """
_OPERATORS = frozenset({"and", "or", "not"})  # of other search engines; in capitals, they are still only words
_LONGEST_ACRONYM = 5  # letters; longer words in capitals are shouted
_MARKS = ".,:;!?()[]\"'"


def _languages_by_word() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for language, listed in _WORDS.items():
        for word in dict.fromkeys(map(stem, fold(listed).split())):
            found[word] = (*found.get(word, ()), language)
    return found


_LANGUAGES = _languages_by_word()
_NO_EVIDENCE = frozenset(map(stem, _MEANT_IN_ENGLISH.split()))
_TOLD_BY_SCRIPT = frozenset({"ar", "ru"})  # no other language here uses these scripts


def function_words(words: Iterable[Word], query: str) -> frozenset[Word]:
    """Return those of the words that are function words of the language that the query is in."""
    by_word = {word: known for word in words if (known := _LANGUAGES.get(_key(word)))}
    if not by_word:
        return frozenset()
    spoken = _TOLD_BY_SCRIPT | _spoken({_key(word): known for word, known in by_word.items()}, query)
    acronyms = _acronyms(query)
    return frozenset(
        word for word, known in by_word.items() if not spoken.isdisjoint(known) and _key(word) not in acronyms
    )


def _key(word: Word) -> str:
    return word.whole or (word.parts[0] if len(word.parts) == 1 else "")


def _spoken(known: Mapping[str, tuple[str, ...]], query: str) -> frozenset[str]:
    """Return the language with the most words of its own in the query; several when they tie, as neighbours do.

    English, unless another has more words that are not English than English has of its own: two of them, or one in a
    query that is recognised as that language.
    """
    evidence = Counter(
        language
        for word, languages in known.items()
        if len(word) > 1 and word not in _NO_EVIDENCE and (_ENGLISH not in languages or len(languages) == 1)
        for language in languages
    )
    most = max(evidence.values(), default=0)
    if most == evidence[_ENGLISH]:
        return frozenset({_ENGLISH})
    likely = frozenset(language for language, count in evidence.items() if count == most)
    return likely if most >= _LEAST_EVIDENCE else likely & {language_of(query)} or frozenset({_ENGLISH})


def _acronyms(query: str) -> frozenset[str]:
    """Return the words typed in capitals, unless all are: IT is a department, US a country, WHO an organisation."""
    if query.isupper():
        return frozenset()
    typed = (word.strip(_MARKS) for word in query.split())
    return (
        frozenset(word.lower() for word in typed if word.isupper() and 2 <= len(word) <= _LONGEST_ACRONYM) - _OPERATORS
    )
