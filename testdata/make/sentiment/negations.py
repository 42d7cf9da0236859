"""Sentences whose class depends on a negation or a contrast, made from templates and words, because they are rare in film reviews.

In a template `like` stands for a word of the sentence's class and `unlike` for a word of the other class: "not {unlike} at all" is positive with a
bad word and negative with a good word. So each template is positive as often as negative, and neither a template nor a word determines the class.
Training, validation and held-out parts share no template and no opinion word.
"""

import functools
import random
import re
from itertools import count, islice

import data

PARTS = ("training", "validation", "held_out")

FILMS = "film movie picture comedy thriller drama sequel documentary".split()
ASPECTS = "plot script story acting dialogue pacing humor ending soundtrack photography direction cast".split()

# Judgements, good and bad: adjectives, nouns, and verbs in two forms.
ADJECTIVES = {
    "training": (
        """good great wonderful funny charming clever moving brilliant beautiful enjoyable entertaining interesting original fresh smart witty
        touching exciting fascinating gripping impressive lovely memorable powerful stunning strong subtle sweet thrilling warm superb excellent
        compelling delightful engaging inventive likable satisfying rewarding amusing insightful refreshing hilarious perfect fun adorable adept
        admirable affecting agreeable ambitious appealing assured astonishing atmospheric authentic bold breathtaking bright capable cheerful
        comfortable courageous crafty crisp daring dazzling decent deep deft detailed eloquent endearing energetic epic exhilarating
        exquisite extraordinary fine flawless friendly gentle genuine glorious gorgeous grand gratifying handsome happy haunting hopeful humorous
        incredible infectious innovative inspiring inspired intriguing joyful joyous lyrical masterful meaningful mesmerizing nice nuanced
        passionate playful pleasant pleasing poetic polished precise profound provocative pure quirky remarkable rich romantic
        sensitive sharp sincere skillful solid sophisticated spectacular spirited splendid stirring striking stylish surprising tasteful tender
        tight truthful uplifting upbeat vibrant visionary vivid wise worthwhile worthy""".split(),
        """bad boring dull terrible awful stupid predictable tedious silly weak slow lame flat empty ugly cheap annoying pointless clumsy bland
        forgettable disappointing shallow pretentious confusing lifeless mediocre messy unfunny horrible contrived dreary ridiculous poor sloppy
        stale painful tiresome trite incoherent hollow dumb abysmal absurd aimless appalling artificial atrocious awkward bloated brainless callous
        careless chaotic cheesy childish clunky cold confused convoluted corny crass crude cruel cynical deadly derivative desperate dim
        dismal disgusting dishonest dry excruciating exhausting fake false familiar feeble flawed foolish frantic frustrating generic gloomy gross
        heartless hopeless humorless idiotic inane inert infantile inferior joyless juvenile laborious lackluster lazy leaden limp listless
        lumbering maudlin mawkish meandering meaningless mindless miserable misguided mundane murky nasty nonsensical numbing obnoxious obvious
        offensive ordinary outdated overblown pathetic pedestrian phony plodding ponderous puerile pallid pompous rancid routine sappy
        sentimental senseless shabby shoddy sick simplistic sketchy soggy soulless stiff stilted strained stupefying superficial tacky tasteless
        tawdry thin thoughtless turgid unbearable uneven uninspiring uninvolving unnecessary unoriginal unpleasant unwatchable useless vapid
        vulgar wearisome worthless wretched""".split(),
    ),
    "validation": (
        "imaginative absorbing elegant lively amazing graceful heartfelt enchanting".split(),
        "banal sluggish wooden muddled formulaic amateurish uninspired inept".split(),
    ),
    "held_out": (
        "intelligent convincing captivating terrific believable poignant suspenseful thoughtful marvelous magical riveting fantastic".split(),
        "dreadful lousy repetitive unconvincing implausible preachy insipid manipulative irritating laughable disjointed overlong".split(),
    ),
}
NOUNS = {
    "training": (
        ["masterpiece", "triumph", "delight", "gem", "treat", "joy", "success", "classic", "winner", "pleasure", "hit", "blessing", "charmer", "surprise",
         "achievement", "thrill", "beauty", "blast", "jewel", "victory"],
        ["disaster", "mess", "failure", "bore", "disappointment", "waste of time", "flop", "dud", "chore", "mistake", "catastrophe", "muddle", "cliche",
         "insult", "sham", "rip off", "nightmare", "torture", "loss", "joke"],
    ),
    "validation": (["revelation", "wonder", "feast"], ["letdown", "fiasco", "drag"]),
    "held_out": (["marvel", "knockout", "work of art", "crowd pleaser"], ["bomb", "misfire", "embarrassment", "ordeal"]),
}
VERBS = {
    "training": (
        ["work works", "charm charms", "shine shines", "delight delights", "entertain entertains", "impress impresses", "succeed succeeds"],
        ["fail fails", "drag drags", "bore bores", "disappoint disappoints", "annoy annoys", "stumble stumbles", "fall flat falls flat"],
    ),
    "validation": (["dazzle dazzles", "engage engages"], ["plod plods", "tire tires"]),
    "held_out": (["captivate captivates", "enthrall enthralls", "sparkle sparkles"], ["irritate irritates", "falter falters", "frustrate frustrates"]),
}
FEELINGS = {
    "training": (["love", "like", "enjoy", "recommend"], ["hate", "dislike", "regret", "forget"]),
    "validation": (["adore"], ["loathe"]),
    "held_out": (["admire", "treasure"], ["despise", "detest"]),
}

TEMPLATES = {
    "training": """
        Not {unlike}.
        Not {unlike} at all.
        Not {unlike}, not {unlike2}.
        Not {unlike}, but {like}.
        Not so {unlike}.
        Not very {unlike}.
        Not really {unlike}.
        Not exactly {unlike}.
        Not as {unlike} as people say.
        Not a {unlike} {film}.
        Not a {unlike} {film}, and never {unlike2}.
        Not the {unlike_noun} I had expected.
        It is not {unlike}.
        It's not {unlike} at all.
        The {film} is not {unlike}.
        The {aspect} is not {unlike}.
        This is not a {unlike} {film}.
        This was not {unlike} and not {unlike2}.
        The {aspect} isn't {unlike}.
        The {aspect} wasn't {unlike} at all.
        It isn't a {unlike} {film}.
        It isn't {unlike}; it is {like}.
        It wasn't that {unlike}.
        Never {unlike}.
        Never {unlike}, never {unlike2}.
        Never {unlike}, always {like}.
        It is never {unlike}.
        The {aspect} is never less than {like}.
        The {film} never {unlikes}.
        A {film} that never {unlikes}.
        A {film} that is never {unlike}.
        The {aspect} does not {unlike_verb}.
        It doesn't {unlike_verb}.
        The {film} didn't {unlike_verb}.
        I did not {unlike_feel} it.
        I don't {unlike_feel} this {film}.
        I didn't {unlike_feel} it at all.
        You won't {unlike_feel} it.
        You will not {unlike_feel} the {aspect}.
        I don't think it is {unlike}.
        I don't think this {film} is a {unlike_noun}.
        I do not believe that the {aspect} is {unlike}.
        I wouldn't call it {unlike}.
        I would not call the {aspect} {unlike}.
        No one would call this {film} {unlike}.
        Nobody would say that it is {unlike}.
        Nobody could {unlike_feel} this {film}.
        Nothing {unlike} here.
        Nothing in it is {unlike}.
        Nothing about the {aspect} is {unlike}.
        Nothing about it {unlikes}.
        There is nothing {unlike} in the {aspect}.
        There's not one {unlike} scene.
        There is no {unlike} scene in this {film}.
        No {unlike} jokes, no {unlike2} {aspect}.
        It is no {unlike_noun}.
        This {film} is no {unlike_noun}.
        Hardly {unlike}.
        Hardly a {unlike_noun}.
        The {aspect} is hardly {unlike}.
        It is hardly a {unlike} {film}.
        Barely {unlike}.
        The {aspect} is scarcely {unlike}.
        Neither {unlike} nor {unlike2}.
        The {film} is neither {unlike} nor {unlike2}.
        Anything but {unlike}.
        The {aspect} is anything but {unlike}.
        It is anything but a {unlike_noun}.
        It is far from {unlike}.
        The {aspect} is far from {unlike}.
        A {film} far from {unlike}.
        It is a long way from {unlike}.
        Less {unlike} than {like}.
        Less a {unlike_noun} than a {like_noun}.
        More {like} than {unlike}.
        {like} rather than {unlike}.
        {like} instead of {unlike}.
        {like}, not {unlike}.
        A {like_noun}, not a {unlike_noun}.
        Without anything {unlike}.
        A {film} without {unlike} moments.
        It manages not to be {unlike}.
        It fails to be {unlike}.
        It fails to {unlike_verb}.
        It refuses to be {unlike}.
        I expected a {unlike_noun}, but it is a {like_noun}.
        I expected a {unlike} {film}, but it was {like}.
        I expected to {unlike_feel} it, but I didn't.
        I expected to {unlike_feel} it and I ended up thinking it was {like}.
        I thought I would {unlike_feel} this {film}, but it {likes}.
        I wanted to {unlike_feel} it, but it is {like}.
        It was supposed to be {unlike}, but it's {like}.
        It should have been {unlike}, but it isn't.
        It could have been {unlike}.
        It might have been a {unlike_noun}.
        It sounds {unlike}, but it is {like}.
        It starts {unlike}, but ends {like}.
        At first it is {unlike}, later it is {like}.
        They say it is {unlike}; it is not.
        People told me it was {unlike}, and they were wrong.
        {unlike} {aspect}, {like} {film}.
        {unlike} {aspect}, but a {like} {film}.
        {unlike} {aspect}, {unlike2} {other}, but a {like} {film}.
        The {aspect} is {unlike}, but the {film} is {like}.
        The {aspect} is {unlike}, but the {other} is {like} and the {film} {likes}.
        The {aspect} was {unlike}, yet the {film} was {like}.
        The {aspect} is {unlike}. The {film}, however, is {like}.
        A {unlike} {aspect} in a {like} {film}.
        A {like} {film} with a {unlike} {aspect}.
        A {like} {film} in spite of its {unlike} {aspect}.
        A {like} {film}, though the {aspect} is {unlike}.
        Although the {aspect} is {unlike}, the {film} is {like}.
        Though {unlike} in places, it is a {like} {film}.
        While the {aspect} is {unlike}, the {film} as a whole is {like}.
        Even with a {unlike} {aspect}, it is {like}.
        Despite the {unlike} {aspect}, it is a {like} {film}.
        In spite of the {unlike} {aspect}, I found it {like}.
        Its {aspect} is {unlike}, still it {likes}.
        {unlike}? No, {like}.
        Is it {unlike}? Not at all.
        {unlike}? Not this {film}.
        It is {like}, even if the {aspect} is {unlike}.
        {like}, if a little {unlike}.
        {like}, but also a bit {unlike}.
        Not only {like}, but {like2}.
        Not just {like}, also {like2}.
        It could not be more {like}.
        It couldn't have been more {like}.
        I have never seen such a {like} {film}.
        I have never seen a more {like} {film}.
        No {film} was ever so {like}.
        No doubt a {like} {film}.
        There is no denying that the {aspect} is {like}.
        You cannot deny that it is {like}.
        Nothing but {like}.
        Nothing less than a {like_noun}.
        It never stops being {like}.
        It doesn't get more {like} than this.
        A {like} {film}.
        The {aspect} is {like}.
        {like} and {like2}.
        It is a {like_noun}.
        This {film} {likes}.
        The {aspect} is {like} and the {film} {likes}.
        You will {like_feel} this {film}.
    """,
    "validation": """
        Not once is it {unlike}.
        It's no {unlike_noun}, whatever the trailer says.
        I can't call this {film} {unlike}.
        Nothing here is {unlike}, least of all the {aspect}.
        Rarely {unlike}.
        What is {unlike} in the {aspect} is forgotten, since the rest is so {like}.
        Don't believe those who call it {unlike}.
        It didn't strike me as {unlike}.
        I came to {unlike_feel} it and left thinking it {like}.
        The first half is {unlike}, but all in all it is a {like} {film}.
        It never {unlikes}, not even at the end.
        {unlike} it is not.
        I was wrong to think it would be {unlike}.
        For all its {unlike} {aspect}, it {likes}.
        There isn't a {unlike} line in the {aspect}.
    """,
    "held_out": """
        Not a {unlike} moment in the whole {film}.
        There is nothing {unlike} about this {film}.
        You could never call the {aspect} {unlike}.
        Far from {unlike}, this {film} is {like} from beginning to end.
        I was prepared for a {unlike_noun} and got a {like_noun}.
        The critics called it {unlike}, but they are wrong.
        It may look {unlike} at first, yet it turns out to be {like}.
        Who says that this {film} is {unlike}? It isn't.
        Once more a {film} that isn't {unlike}.
        I didn't find it {unlike} in the least.
        The {aspect} may be {unlike}, but what a {like} {film}!
        Its {aspect} is rather {unlike}; everything else is {like}.
        This {film} doesn't {unlike_verb} for a second.
        It has no {unlike} scenes.
        It isn't {unlike}, and it isn't {unlike2} either.
        It is no {unlike_noun} at all, whatever you heard.
        Forget the {unlike} {aspect}: the rest is {like}.
        Despite a {unlike} {aspect}, the {film} {likes}.
        It could have been a {unlike_noun}, and instead it is {like}.
        Even the {aspect}, mostly {unlike} in such a {film}, is {like} here.
        By no means {unlike}.
        It never comes close to being {unlike}.
        I can't think of anything {unlike} in it.
        Hardly ever {unlike}, and often {like}.
        I thought I would {unlike_feel} every minute, but it was {like}.
    """,
}


# Only for training: one of the alternatives in brackets is chosen; a pattern may span lines and ends with a full
# stop.
PATTERNS = """
    [|I must say: |Believe me, |In the end |To be honest, |For me ][it|this {film}|the {aspect}|the whole thing|the result]
        [is not|isn't|was not|wasn't|is never|was never|is hardly|is barely|is not even|is not remotely|is nowhere near|is in no way|was at no point]
        [|a bit |really |exactly |particularly |very |too |all that ]{unlike}[| at all|, ever|, not even once|, not for a minute|, I promise].
    [Nothing here|None of it|No part of it|No scene|Nobody in it|Nothing about the {aspect}] [ever |]
        [seems|feels|looks|sounds|becomes|gets|is|was] {unlike}[|, least of all {aspect} and {other}|, at least to me|, as far as I can tell].
    [It|This {film}|The {aspect}] [doesn't|does not|didn't|never did|will not|won't|can't|couldn't|refuses to|fails to|forgets to|is unable to]
        [seem|feel|look|sound|become|get|be|turn|stay|appear] {unlike}[| at all| to me|, not even at the end|, not even for a moment].
    [I|We|You|My friends|The audience] [wouldn't|would not|can't|cannot|couldn't|won't|don't|did not|shouldn't|would hardly|can hardly]
        [call|consider|find|think|declare] [it|this {film}|the {aspect}|this one] [|really |very |too ]{unlike}.
    [No one|Nobody|No critic|No viewer|Few people|Only a fool|Hardly anyone] [would|could|can|will|should]
        [call|consider|find|declare] [it|this {film}|the {aspect}|this one] {unlike}.
    [It|This {film}|The {aspect}] [can't|cannot|could hardly|should not|could not|couldn't possibly] be called {unlike}.
    [There is|There was|There's|I saw|I found|It has|It offers] [not one|no|not a single|hardly a|hardly any|scarcely a] {unlike}
        [line|scene|joke|minute|idea|shot|performance|thing][| in it| in this {film}| in the {aspect}| anywhere].
    [I noticed|I saw|I remember|We found|It contains|It shows|One sees] [nothing|not one thing|hardly anything|little] {unlike}[| in it| here| anywhere].
    [It has|There is] nothing [of a|like a] {unlike_noun}[ here| in it|].
    [Not once|Not for a moment|At no time|At no point|In no way|Never once|Never for a minute] [is|was|does it seem|did it feel] [it |]{unlike}.
    [It is|It's|It was|This is|This was] [not|hardly|never|scarcely|anything but|far from|nowhere near|not quite] [the|a|another]
        {unlike_noun}[| at all| for me|, whatever the posters say|, despite the talk|, if you ask me].
    [It is|It's|It was|This is] [hardly|anything but|far from|nowhere near|not nearly so|not half as|not remotely] {unlike}[| at all|, if you ask me].
    [Hardly|Barely|Scarcely|Rarely|Seldom|Never|Not ever|Not] [| very | really | too | truly ]{unlike}[|, I would say| for me| this time].
    {unlike}[? Never|? No way|? Hardly|? Not really|? I don't think so|? Nobody would say so| it isn't| it was not| is what it never is| it never gets].
    [Don't|Do not|You should not] [listen to|trust|believe|mind] [those|people|critics|anyone] who [call|find|think] [it|this {film}] {unlike}.
    [Some people|My friends|They|The papers|Many|Others] [say|claim|think|told me|insist|believe] [that |][it|this {film}] is {unlike}
        [|. They are wrong|, but they are mistaken|, which is nonsense|; I disagree|, but it isn't|, and I don't see why|. Not true|. Don't believe them].
    [I|We] [expected|feared|thought|was sure|had heard|was told|hoped|assumed|guessed|believed] [that |][it|the {film}|the {aspect}]
        [would be|was|was going to be] {unlike}[, but|, yet|; instead|. But|, only] [it is|it was|it turned out|it proved] {like}.
    [I was|We were] [wrong to expect|wrong to fear|mistaken to think it was|wrong to call it] [something |]{unlike}.
    [I|We] [went in|came|sat down|started] [expecting|fearing|hoping for|prepared for] [a {unlike} {film}|a {unlike_noun}|something {unlike}]
        [and|but] [got|saw|found|left with|ended up with] [a {like} one|a {like_noun}|something {like}].
    [I|We] [expected|wanted|was ready|meant|was supposed|tried] to {unlike_feel} [it|this {film}|the {aspect}][, but|, yet|; still|. But]
        [I|we] [couldn't|could not|did not|didn't|never did|found it {like}|thought it {like}|left it thinking it was {like}].
    [It|This {film}] [should|could|might|ought to|would] have been {unlike}, [but|yet|only] [it|this one] [isn't|wasn't|is not|is {like}|was {like}].
    [The trailer|The title|The first scene|The beginning|The first half|The opening] [is|looks|seems|was] {unlike}[, but|, yet|; still|. However,]
        [the rest|what follows|the second half|the {film}|all in all it|the whole] is {like}.
    [What|Whatever] is {unlike} [in it|here|about it] [is soon forgotten|does not matter|hardly counts|is made up for|cannot change that]: it [is|remains|stays] {like}.
    [For all|Despite|In spite of|Even with|Notwithstanding] [its|the|that|all this] {unlike} [{aspect}|{aspect} and {unlike2} {other}], [it|the {film}|this one]
        [is|remains|stays|was] [|rather |really |still ]{like}.
    [The {film}|It] [is|remains|was|feels] {like} [despite|in spite of|for all|even with|whatever you think of] [its|the] {unlike} {aspect}.
    [Although|Though|While|Even though|Even if] [the {aspect}|it|the {other}|some of it] [is|was|seems|can be] {unlike}, [the {film}|it|the whole]
        [is|was|remains] {like}[| in the end| all the same].
    [The {film}|It] [is|was] {like}, [although|though|even though|even if|while] [the {aspect}|some of it|its {other}] [is|was|seems] {unlike}.
    [{unlike} {aspect}|{unlike} at times|A {unlike} {aspect}|A {unlike} start], [but|yet|still|and yet] [a {like} {film}|{like}|it {likes}|a {like_noun}|all in all {like}].
    [I|We|You may] {unlike_feel} the {aspect}[ and the {other}|], but [it|the {film}] is {like}.
    [Everything|All|The whole {film}] is {like} [except|but for|apart from] [the|its] {unlike} {aspect}.
    [The {aspect}|The {other}] is {unlike}, [the {film} is not|but not the {film}|the rest is not].
    [I|We|You] [do not|don't|did not|didn't|won't|will not|cannot|can't|never|could never|would not] {unlike_feel} [it|this {film}|a minute of it|the {aspect}].
    [Nobody|No one|Hardly anyone|Few people] [will|would|could|can] {unlike_feel} [it|this {film}|the {aspect}].
    [Nothing|None of it|Hardly anything|No part of it|Not one scene] [in it |here |]{unlikes}.
    [It|This {film}|The {aspect}] [doesn't|does not|didn't|won't|never seems to|can't|couldn't] {unlike_verb}[| for long| at all| once| even for a moment].
    [It|This {film}] is [too|far too|much too] {like} to [{unlike_verb}|be {unlike}|seem {unlike}].
    [It lacks anything|It has none of the|It is free of anything|It stays clear of anything|There is a lack of anything] {unlike}.
    Neither the {aspect} nor the {other} is {unlike}.
    [It|This {film}] [manages|is able|contrives] [not |never ]to [be|seem|feel|turn] {unlike}.
    [It|This {film}] [is|was] less {unlike} than [{like}|people say|I was told].
    [How|Why] [could|would|does] anyone [call|find|think] [it|this {film}] {unlike}[? It is {like}|? I can't see it|? It is not].
    [What a {like_noun}|A real {like_noun}|Such a {like_noun}|Truly {like}|So {like}|Quite {like}], [not|never|and not] [a {unlike_noun}|{unlike}|{unlike2}].
    [I|We] [have never seen|never saw|can't remember|don't know|haven't seen] [a more {like} {film}|such a {like} {film}|anything more {like}|anything so {like}].
    [It|The {aspect}|This {film}] [couldn't be|can't be|could hardly be|has never been|was never] more {like}.
    [No doubt|Without doubt|Without question|I don't doubt that|I can't deny that|Nobody will deny that|There's no question that] [it is|this is|the {aspect} is] {like}.
    [Not only|Not just|Not merely] [is it |]{like}, [but |it is ][also |]{like2}.
    [It|This {film}|The {aspect}|The whole thing] [is|was|feels|seems|remains|gets|becomes] [|so |very |really |rather |quite |truly |always ]{like}[| and {like2}].
    [I|We|You will] {like_feel} [it|this {film}|the {aspect}|every minute of it][|: it is {like}|, since it {likes}].
"""


def templates(part):
    return [line.strip() for line in TEMPLATES[part].strip().splitlines()]


def patterns():
    return [" ".join(pattern.split()) for pattern in PATTERNS.strip().replace(".\n", ".\f").split("\f")]


def chosen(pattern, draw):
    """The template with one of the alternatives in each pair of brackets."""
    return re.sub(r"\[([^\[\]]*)\]", lambda match: draw.choice(match.group(1).split("|")), pattern)


def filled(template, label, part, draw):
    """A sentence of this class from the template. `draw` is a random.Random."""
    adjectives, nouns, verbs, feelings = (words[part] for words in (ADJECTIVES, NOUNS, VERBS, FEELINGS))
    slots = {"film": draw.choice(FILMS)}
    slots["aspect"], slots["other"] = draw.sample(ASPECTS, 2)
    for name, side in (("like", label), ("unlike", 1 - label)):
        good = 1 - side
        slots[name], slots[name + "2"] = draw.sample(adjectives[good], 2)
        slots[name + "_noun"] = draw.choice(nouns[good])
        slots[name + "_feel"] = draw.choice(feelings[good])
        both = draw.choice(verbs[good]).split()
        slots[name + "_verb"], slots[name + "s"] = " ".join(both[: len(both) // 2]), " ".join(both[len(both) // 2 :])
    text = " ".join(template.format(**slots).split())
    for pattern, instead in ((r" (?=[.,;:?])", ""), (r"([.?])\.$", r"\1"), (r"\b([Aa]) (?=[aeiou])", r"\1n ")):
        text = re.sub(pattern, instead, text)
    return text[0].upper() + text[1:]


def sentences(part, each):
    """`each` different sentences of every template and class, as snippets rated 2 or -2."""
    found = []
    for place, template in enumerate(templates(part)):
        for label in (1, 0):
            draw = random.Random(f"attn negations 1 {part} {place} {label}")
            # A template with few slots has fewer variants.
            drawn = (filled(template, label, part, draw) for _ in count())
            texts = list(dict.fromkeys(islice(drawn, 4 * each)))[:each]
            found += [data.Snippet(f"{place + 1}{'+' if label else '-'}{number + 1}", 4.0 * label - 2, text) for number, text in enumerate(texts)]
    return found


def near(kept_out):
    """Returns a test for templates: whether one shares half of its four-word sequences, with slots as words, with a held-out one."""
    others = [data.Snippet("", 0.0, template) for part in kept_out for template in templates(part)]
    return lambda template: not data.without_near([data.Snippet("", 0.0, template)], others)


def training(count, kept_out):
    """Different sentences from templates and patterns that are not near the held-out parts."""
    draw = random.Random("attn negations 1 training")
    is_near = functools.cache(near(kept_out))
    sources = [*templates("training"), *patterns() * 4]
    found = {}
    while len(found) < count:
        template, label = chosen(draw.choice(sources), draw), draw.randrange(2)
        if not is_near(template):
            found.setdefault(filled(template, label, "training", draw), label)
    return [data.Snippet(str(place + 1), 4.0 * label - 2, text) for place, (text, label) in enumerate(found.items())]


if __name__ == "__main__":
    is_near = near(PARTS[1:])
    print("left out of training:", *filter(is_near, templates("training")), sep="\n  ")
    for part, some in (("training", training(60, PARTS[1:])), *((part, sentences(part, 4)) for part in PARTS[1:])):
        print(f"{part}: {len(some)} sentences, {sum(s.label for s in some)} positive")
        for snippet in some[:: 1 if part == "training" else 4]:
            print(f"  {'+' if snippet.label else '-'} {snippet.text}")
