"""English function words: a fixed public list, so that keeping them says nothing of the text.

They pass in clear only where a policy says `stopwords="keep"`.
"""

from __future__ import annotations

_WORDS = """
    a an the this that these those such same other another each every either neither both all any
    some no none few many much more most less least several enough own
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    one's who whom whose which what whoever whatever whichever
    someone anyone everyone nobody somebody anybody everybody something anything everything nothing
    and or but nor so yet if then else than though although because since unless until while whereas
    whether as when whenever where wherever why how however therefore thus hence
    of at by for with about against between among into through during before after above below
    to from up down in out on off over under within without across along around behind beside
    beyond near toward towards upon via per
    am is are was were be been being do does did doing done have has had having
    can could may might must shall should will would ought
    not never again further once here there now just only very too also even still already
    ever quite rather almost perhaps
    don't doesn't didn't isn't aren't wasn't weren't haven't hasn't hadn't can't cannot couldn't
    won't wouldn't shouldn't mustn't mightn't needn't shan't ain't
    i'm i've i'll i'd you're you've you'll you'd he's he'll he'd she's she'll she'd it's it'll
    we're we've we'll we'd they're they've they'll they'd that's there's here's what's who's
    where's how's let's
"""
STOPWORDS = frozenset(_WORDS.split())
