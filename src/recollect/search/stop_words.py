"""English words that say nothing about what a question is after, as the lexicon stems them."""

from recollect.lexicon import stem

STOP_WORDS = frozenset(
    stem(word)
    for word in """
    a about above after again all also am an and any anyone anything are as at be because been before being below
    between both but by can could did do does doing done down during each else etc few for from further get gets got
    had has have having he her here hers herself him himself his how i if in into is it its itself just let lets like
    may me might more most must my myself no nor not now of off on once only or other our ours ourselves out over own
    please said same say says shall she should so some someone something such tell than that the their theirs them
    themselves then there these they thing things this those through to too under until up us use used uses using very
    was we were what whatever when where whether which while who whom whose why will with would yes yet you your yours
    yourself yourselves dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt im ive id youre weve thats
    whats
    """.split()
)
