"""Sentences with names: from templates, and real ones (label.py) whose names are replaced by others of the same type.

Slots of a template: {P} a person's full name, {F} a first name, {T} a last name after a title, {L} a last name, {C} a city, {N} a country, {G} any
place, {O} an organisation, {D} a day, month or year, {A} a people's adjective, {S} a language, {E} an event, {W} a work. test.txt has none of these
sentences."""

import re

TEMPLATES = """
{P} was born in {C}.|{P} was born in {C}, {N}, in {D}.|{P} was born on {D} in {C} and died on {D} in {C}.|{P} ({D} – {D}) was a {A} painter.
{P} was a {A} physicist who taught in {C}.|{P} is a {A} actor.|{P} is the daughter of {P} and {P}.
{P}, the son of a farmer, went to {C} in {D}.|{P} studied law at the {O}.|{P} studied at {O} and later at {O}.
{P} grew up in {C} and studied medicine in {C}.|{P} worked for {O} in {C} until {D}.|{P} worked as a teacher in {G}.
{P} has been the head of {O} since {D}.|{P} joined {O} in {D}.|{P} left {O} to found {O}.|{P} founded {O} in {C} in {D}.
{O} was founded in {D} by {P}.|{O} was founded by {P} and {P} in {C}.|{O} is based in {C}.|{O} has its headquarters in {C}, {N}.
{O} said on {D} that it would close its plant in {C}.|{O} said it had bought {O} for two billion dollars.
{O} and {O} have agreed to work together.|{O} hired {P} as its new chief executive.|{O} employs two thousand people in {C}.
{O} makes cars, trucks and engines.|{O} reported higher profits.|Shares of {O} fell by three percent on {D}.
Shares in {O} rose after {P} resigned.|{O} will open an office in {C} next year.|{O} sued {O} in {D}.|{O} announced a new phone.
{O} is looking for engineers in {G}.|The head of {O}, {P}, spoke in {C} on {D}.|A spokesman for {O} said so on {D}.|I work for {O}.
I work at {O} in {C}.|She works for {O}.|He used to work at {O}, but now he is with {O}.|My brother {F} works for {O} in {C}.
My friend {F} lives in {C}.|My name is {F}.|My name is {P} and I live in {C}.|I live in {C}.|I am from {N}.|We live in {G} now.
We went to {C} in {D}.|We are flying to {C} on {D}.|Last year we travelled through {N}.|They moved from {C} to {C} in {D}.
Have you been to {G}?|Have you seen {F}?|Do you know {P}?|{F} and {F} went to the market.|{F} gave {F} a book.|{F} loves {F}.
{F} is late again.|{F} said that {F} was ill.|{F} asked whether we had met {P}.|Where is {F}?|Ask {F} for the key.
Tell {F} that I will come on {D}.|Thank you, {F}.|Dear {F}, thank you for your letter of {D}.|Dear {T}, we have received your order.
{T} lives next door.|{T} will see you now.|{T} of {O} declined to comment.|{T} arrived in {C} on {D}.|I saw {T} at the station.
{T} thanked {P} for the help.|{C} is the capital of {N}.|{C} is a city in {N}.|{C} is a town in the north of {N}.|{C} is smaller than {C}.
The capital of {N} is {C}.|{N} borders {N} and {N}.|{N} and {N} signed a treaty in {D}.|{N} beat {N} by two goals to one.
The president of {N} arrived in {C} on {D}.|The government of {N} denied it.|The king of {N} visited {G}.|The population of {C} has doubled.
The mayor of {C}, {P}, opened the bridge.|The river flows from {G} to {G}.|The road from {C} to {C} is closed.
The train from {C} to {C} leaves at noon.|The flight to {C} was delayed.|The storm moved from {G} towards {G}.
The {A} army reached {C} in {D}.|Snow fell in {G} and {G}.|It rained in {C} on {D}.|There was an earthquake in {G} on {D}.
Police in {C} arrested three men on {D}.|A fire broke out in {C} on {D}.|Two people were hurt near {G}.|He was last seen in {C} on {D}.
The festival takes place in {C} every {D}.|The conference will be held in {C} from {D} to {D}.|The meeting is on {D}.
The meeting with {O} is on {D} in {C}.|Let us meet on {D} at {O}.|The shop is closed on {D}.|The war ended in {D}.|It happened in {D}.
On {D} the king died.|In {D} {P} moved to {C}.|In {D}, {O} moved to {C}.|Since {D} she has lived in {C}.
The exhibition at the {O} opens on {D}.|The film was shot in {G} by {P}.|{P} directed the film.|{P} played the lead in {W}.
{P} wrote {W} in {D}.|I have read {W} twice.|She is reading {W} by {P}.|{W} was a great success in {N}.|We saw {W} in {C}.
{P} won the {E} in {D}.|The {E} began in {D}.|During the {E} many people left {N}.|He fought in the {E}.|{C} hosted the {E} in {D}.
{F} speaks {S} and {S}.|She teaches {S} at {O}.|Most people in {N} speak {S}.|He translated {W} from {S} into {S}.
The {A} government refused.|A {A} ship sank near {G}.|{A} and {A} troops met in {C}.|The {A} team won.|A {A} company bought {O}.
The {A} actor {P} was there.|I like {A} food.|{A} painter {P} died in {C}.|Many {A} writers lived in {C}.|{P} scored twice for {O}.
{O} beat {O} on {D}.|{O} lost to {O} in {C}.|{P} signed for {O} from {O}.|{P} plays for {O}.|{P} is the coach of {O}.
Fans of {O} travelled to {C}.|{P} broke the record in {C}.|{P} and {P} won the match.|{P}, a professor at {O}, studies birds.
{P} of the {O} said the drug was safe.|Researchers at {O} and {O} have found a new planet.|According to {P}, the plan failed.
According to {O}, prices rose in {D}.|"It is a good plan," said {P}.|"We are ready," {T} told {O}.|{P} met {P} in {C}.|{P} met {P} on {D}.
{P} married {P} in {D}.|{P} and her husband {F} live in {C}.|{P} and his wife {F} bought a house in {G}.|{P} succeeded {P} as head of {O}.
{P} was arrested in {C} on {D}.|{P} died yesterday.|{P} sang at the {E}.|Senator {L} voted against it.|{L} was elected in {D}.
{L} said that {O} would pay.|In {C} {L} wrote his best book.|{L} and {L} proved the theorem.|{L}'s house is in {C}.
{F}'s mother comes from {N}.|{P}'s book is about {G}.|{O}'s profits doubled.|{N}'s economy grew.|{C}'s streets are narrow.
The {O} gave {P} a prize.|The {O} of {N} met on {D}.|The {O} will vote in {D}.|The {O} was built in {D}.
The {O} published its report on {D}.|He was a member of the {O}.|She left the {O} in {D}.|A letter from {O} came on {D}.
He studied history at the {O} in {C}.|I bought it from {O}.|I ordered a phone from {O} in {D}.|My {O} phone broke.
The new {O} laptop is fast.|We use {O} and {O} at work.|You can search for it with {O}.|I saw it on {O}.|He has an account with {O}.
{O} is better than {O}.|The parcel came from {C} by {O}.|The mountains of {G} are high.|We climbed in {G}.|They sailed around {G}.
The desert lies between {N} and {G}.|{G} is the largest lake in {N}.|{G} is the highest mountain in {G}.|The boat crossed {G}.
There are lions in {G}.|The beaches of {G} are white.|We stayed near {G} for a week.|From {C} he went to {C} and then to {C}.
{C}, {C} and {C} are in {N}.|{F}, {F} and {F} came to dinner.|{P}, {P} and {P} were there.|{O}, {O} and {O} pay no tax.
Between {D} and {D} he lived in {G}.|Born in {C}, {P} moved to {N} in {D}.|Educated at {O}, {P} went to {G}.|Did {O} call?|Is {C} in {N}?
Who is {P}?|What does {O} do?|When did {P} leave {C}?|How far is {C} from {C}?|{F}, please call {T}.|Good morning, {T}.|Happy birthday, {F}!
See you on {D}, {F}.|Welcome to {C}!|Greetings from {G}!
""".strip().replace("\n", "|").split("|")

# Without names: words that are capitalised only at the start of a sentence, and common nouns.
NOTHING = """
The weather is nice today.|She bought apples and a pear.|Our dog likes to sleep in the sun.|What time is it?|Please close the door.
The children played in the garden.|He reads a book every week.|Winter was long and cold.|Most people prefer tea.|Nobody knew the answer.
It takes two hours by car.|Her mother is a doctor.|The king and the queen had no children.|A company must pay its workers.
Many rivers begin in the mountains.|Turn left at the corner.|Will you come with me?|Mark the right answer.|May I help you?
Rose bushes need water.|The bank was closed.|An apple a day is enough.|We may go to the museum.|Bill them for the work.
The target was missed.|Frank words are rare.|The university is old.|They met at the hotel.|This street is too loud.
The president spoke for an hour.|A professor of history was there.|Her book is about the moon and the stars.|I will hunt for the keys.
The art of war is old.|Some towns have no station.|Jack up the car first.|Then the summer came.|Until then nothing happened.
Good coffee is expensive.|Never mind.|Thanks for your help!|However, the plan failed.|Although it rained, we went out.
Two birds sat on the roof.|Everyone laughed.|Yesterday I was ill.
""".strip().replace("\n", "|").split("|")

SLOT = re.compile(r"\{(\w)\}")
DRAWS = {
    "P": "person",
    "F": "first",
    "L": "last",
    "C": "city",
    "N": "country",
    "G": "place",
    "O": "organization",
    "D": "date",
    "A": "people",
    "S": "language",
    "E": "event",
    "W": "work",
}
TYPE = {
    "P": "PER",
    "F": "PER",
    "L": "PER",
    "C": "LOC",
    "N": "LOC",
    "G": "LOC",
    "O": "ORG",
    "D": "DATE",
    "A": "MISC",
    "S": "MISC",
    "E": "MISC",
    "W": "MISC",
}


def put(parts):
    """(text, spans) of parts, each of which is a text or a pair of text and type."""
    text, spans = "", []
    for part in parts:
        if isinstance(part, tuple):
            spans.append([len(text), len(text) + len(part[0]), part[1]])
            part = part[0]
        text += part
    return text, spans


def filled(template, names):
    parts, at = [], 0
    for match in SLOT.finditer(template):
        parts.append(template[at : match.start()])
        at = match.end()
        if match[1] == "T":
            parts += [names.title() + " ", (names.last() if names.random.random() < 0.8 else names.person(), "PER")]
            continue
        parts.append((getattr(names, DRAWS[match[1]])(), TYPE[match[1]]))
    parts.append(template[at:])
    return put(parts)


def templates(names):
    if names.random.random() < 0.08:
        return names.one(NOTHING), []
    text, spans = filled(names.one(TEMPLATES), names)
    if names.random.random() < 0.12:
        more, others = filled(names.one(TEMPLATES), names)
        spans += [[start + len(text) + 1, end + len(text) + 1, kind] for start, end, kind in others]
        text += " " + more
    return text, spans


def replaced(row, names, share):
    """A real sentence in which some names are replaced."""
    text, spans = row
    parts, at = [], 0
    for start, end, kind in spans:
        parts.append(text[at:start])
        at = end
        old = text[start:end]
        if names.random.random() >= share or kind == "MISC" or (kind == "DATE" and not re.fullmatch(r"\d{4}|[A-Z][a-z]+ \d{4}|[A-Z][a-z]+day", old)):
            new = old
        elif kind == "PER":
            before = text[:start].rstrip().rsplit(" ", 1)[-1]
            new = names.person() if " " in old else names.last() if before.endswith(".") or names.random.random() < 0.4 else names.first()
        elif kind == "LOC":
            new = names.place() if names.random.random() < 0.5 else names.city()
        elif kind == "ORG":
            new = names.organization()
        else:
            new = names.date()
        parts.append((new, kind))
    parts.append(text[at:])
    return put(parts)
