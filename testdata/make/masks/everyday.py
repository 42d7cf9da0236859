"""Sentences of everyday life and facts about countries, from templates: content that is rare in dictionaries, novels and speeches.

They are used only for training. Accuracy is measured on real sentences and on test.txt."""

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "corpora"))
import packages  # noqa: E402

WORDS = {
    "drink": "tea coffee water milk juice wine beer chocolate lemonade soup",
    "hotdrink": "tea coffee tea coffee chocolate milk",
    "food": "bread cheese rice pasta soup fish meat chicken salad pizza cake butter eggs potatoes fruit vegetables beans honey ham chocolate",
    "dish": "sandwich pizza salad steak cake pie burger banana pear meal soup omelette",
    "fruit": "apple banana pear orange peach lemon cherry melon grape plum",
    "meal": "breakfast lunch dinner supper",
    "animal": "dog cat horse cow sheep goat pig rabbit bird mouse fox wolf bear lion tiger elephant monkey snake fish duck chicken",
    "pet": "dog cat rabbit bird hamster parrot",
    "wild": "lions tigers bears wolves foxes elephants monkeys snakes sharks spiders",
    "colour": "red blue green yellow black white brown grey orange pink purple",
    "eyes": "blue brown green dark big grey",
    "hair": "long short brown black blond red dark grey curly",
    "person": "man woman boy girl teacher doctor nurse farmer driver student child soldier lawyer painter singer writer cook waiter policeman neighbour friend baker",
    "job": "teacher doctor nurse farmer driver lawyer painter singer writer cook waiter engineer dentist pilot carpenter baker scientist journalist soldier",
    "family": "mother father sister brother son daughter wife husband uncle aunt grandmother grandfather cousin parents children",
    "room": "kitchen bedroom bathroom garden office garage cellar hall room house",
    "furniture": "table chair bed sofa desk shelf floor cupboard",
    "clothes": "coat hat shirt shoes gloves scarf jacket dress trousers socks boots sweater cap",
    "place": "park school office market station church library museum hospital hotel beach restaurant cinema theatre airport bank shop garden forest zoo",
    "shop": "store shop market bakery supermarket",
    "vehicle": "car bus train bike truck taxi van boat plane ship",
    "body": "leg arm hand foot finger nose knee shoulder ankle wrist neck back",
    "weather": "cold warm hot sunny cloudy windy rainy dark nice",
    "season": "spring summer autumn winter",
    "day": "monday tuesday wednesday thursday friday saturday sunday",
    "month": "january february march april may june july august september october november december",
    "time": "morning evening afternoon night",
    "number": "two three four five six seven eight nine ten twelve twenty",
    "instrument": "piano violin guitar flute trumpet drums cello harp",
    "sport": "football tennis basketball chess golf cricket hockey baseball volleyball",
    "good": "good great excellent wonderful fantastic brilliant funny beautiful interesting exciting",
    "bad": "bad terrible boring awful dull horrible stupid long silly",
    "feeling": "happy sad angry tired hungry thirsty sick afraid bored lonely nervous proud surprised",
    "reading": "book novel letter story newspaper magazine poem article",
    "thing": "key phone bag book box letter ball lamp picture clock pen knife bottle camera computer umbrella wallet ticket",
    "big": "big small large little tall short old new heavy expensive cheap",
    "device": "light radio television computer phone lamp oven",
    "subject": "history physics mathematics chemistry biology music art law medicine english french geography",
    "toy": "ball doll kite toys blocks",
    "name": "anna peter mary john tom sarah paul lisa david emma james kate jack george alice robert jane michael",
    "tree": "tree roof wall fence house bridge",
    "water": "sea river lake ocean water pool",
}
FACTS = """
the opposite of hot is cold|the opposite of cold is hot|the opposite of big is small|the opposite of small is big
the opposite of good is bad|the opposite of bad is good|the opposite of old is young|the opposite of new is old
the opposite of long is short|the opposite of high is low|the opposite of fast is slow|the opposite of rich is poor
the opposite of happy is sad|the opposite of day is night|the opposite of black is white|the opposite of left is right
the opposite of open is closed|the opposite of easy is difficult|the opposite of strong is weak|the opposite of early is late
the opposite of full is empty|monday comes after sunday|tuesday comes after monday|wednesday comes after tuesday
thursday comes after wednesday|friday comes after thursday|saturday comes after friday|sunday comes after saturday
february comes after january|march comes after february|may comes after april|june comes after may|july comes after june
summer comes after spring|autumn comes after summer|winter comes after autumn|one plus one is two|two plus two is four
two plus three is five|three plus three is six|four plus four is eight|five plus five is ten|three plus four is seven|two times three is six
three times three is nine|the sun rises in the east|the sun sets in the west|the sky is blue|grass is green|snow is white|blood is red
coal is black|the night is dark|ice is cold|fire is hot|sugar is sweet|lemons are sour|the sea is deep|gold is expensive
milk comes from cows|eggs come from hens|wool comes from sheep|honey comes from bees|wine is made from grapes|bread is made from flour
cheese is made from milk|paper is made from wood|glass is made from sand|fish live in water|birds live in trees|bears live in the forest
lions live in africa|bees make honey|cats catch mice|dogs bark|birds sing|cows eat grass|horses run fast|a baby dog is a puppy
a baby cat is a kitten|a week has seven days|a year has twelve months|a day has twenty-four hours|an hour has sixty minutes
a minute has sixty seconds|a hand has five fingers|a cat has four legs|a car has four wheels|a triangle has three sides
paris is a city in france|london is a city in england|rome is a city in italy|berlin is a city in germany|madrid is a city in spain
tokyo is a city in japan|moscow is a city in russia|vienna is a city in austria
""".strip().replace("\n", "|").split("|")
TEMPLATES = """
she drank a cup of {hotdrink}.|he drank a glass of {drink}.|would you like a cup of {hotdrink}?|i would like a glass of {drink}, please.
she made a pot of {hotdrink}.|he spilled his {drink} on the {furniture}.|do you want some {drink}?|we drink {hotdrink} in the {time}.
he ordered a cup of {hotdrink} and a piece of cake.|i had a cup of {hotdrink} for {meal}.|there is no {drink} left in the bottle.
she poured the {drink} into a glass.|a bottle of {drink} stood on the table.|we had {food} for {meal}.|i ate {food} for {meal}.
she cooked {food} for {meal}.|he was hungry, so he ate a {dish}.|she is eating a {dish}.|my {family} makes the best {food}.
he bought {food} and {food} at the {shop}.|we need {food}, {food} and {drink}.|she cut the bread with a knife.
he cut the {food} with a knife.|she eats an apple every day.|he peeled the {fruit}.|the {food} is in the fridge.|the soup is too {soup}.
the {food} tasted {good}.|the {food} was {bad}.|{meal} is ready.|i went to the {shop} to buy {food}.|we went to the {place} on {day}.
she walked to the {place}.|he went to the {place} by {vehicle}.|they met at the {place}.|we waited for him at the {place}.
the {place} is closed on {day}.|let us go to the {place}.|he opened the door with a key.|she opened the {thingbox} and looked inside.
please close the door.|please open the window.|he knocked on the door.|she locked the door and put the key in her {pocket}.
the door was open.|please turn off the {device}.|she turned on the {device}.|the {pet} is sleeping on the {furniture}.
the dog chased the {chased}.|the cat caught a mouse.|the dog barked at the {person}.|i have a {pet} and two {pets}.|my {pet} is {big}.
she feeds the {pet} every {time}.|we saw {wild} at the zoo.|she is afraid of {wild}.|the {animal} is {colour}.
a {animal} ran across the road.|the farmer has {number} cows.|the farmer milks his cows every morning.|the bird built a nest in the tree.
the horse jumped over the {tree}.|a bird sat on the {tree}.|the children fed the ducks in the park.|my {family} is a {job}.
her {family} works as a {job}.|he wants to become a {job}.|my {family} is {number} years old.|my {family} lives in the city.
she is a {job} at the hospital.|the {job} works in a {place}.|he is taller than his {family}.|she loves her {family}.
i called my {family} last {time}.|my mother and my father are at home.|the king and the queen lived in a castle.
the boy and the girl played together.|her husband is a {job}.|his wife is a {job}.|they got married and had {number} children.
they have {number} children.|she has a baby.|the baby began to cry.|the baby is sleeping.|the child is playing with a {toy}.
the children are playing in the {playground}.|the children went to school.|the teacher asked the {pupil} a question.
the {pupil} answered the question.|she studies {subject} at the university.|he teaches {subject} at school.|we learn {subject} at school.
he put on his {clothes} and his {clothes}.|she wore a {colour} dress.|he took off his {clothes}.|she bought a new pair of shoes.
her {clothes} is too {big}.|i like your {clothes}.|he wears a {colour} {clothes}.|she has {hair} hair.|she has {eyes} eyes.
the girl has {hair} hair and {eyes} eyes.|the {thing} is on the {furniture}.|the book is on the table.|i forgot my {thing} at home.
she lost her {thing}.|where is my {thing}?|he found a {thing} in the {room}.|this {thing} is too {big}.
she put the {thing} on the {furniture}.|he gave me a {thing}.|there is a {thing} in my bag.|he paid for it with his credit card.
i forgot my wallet, so i cannot pay.|it costs {number} dollars.|this is very expensive.|it is cheap.|she spent all her money.
he has no money.|she paid the bill.|how much does it cost?|i am reading a {reading}.|she is reading an interesting book.
she wrote a letter to her friend.|he wrote a {reading} about his {family}.|he reads the newspaper every {time}.|i have read this book.
she read a story to the children.|the {reading} was {good}.|the {reading} was {bad}.|we watched a film at the cinema.
we watched a movie last {time}.|the film was really {good}.|the film was really {bad}.|the movie was {good}.|it was a {good} film.
i watched television.|she listens to music.|he sang a song.|she plays the {instrument}.|he plays the {instrument} in an orchestra.
she is learning to play the {instrument}.|he plays {sport} every {day}.|they play {sport} in the {playground}.|our team won the game.
our team lost the match.|she swims in the {water}.|he runs every morning.|the ball rolled into the street.|he threw the ball to me.
she kicked the ball.|i get up at {number} in the morning.|i go to bed at ten in the evening.|the shop closes at {number} in the {time}.
the shop opens at {number} in the morning.|the train leaves at {number}.|the train was late, so we waited for an hour.
the {vehicle} was late.|he drove his car to work.|she goes to work by {vehicle}.|he missed the {vehicle}.|the plane landed at the airport.
the ship sailed across the {sea}.|the train arrived at the station.|the bus stops in front of the {place}.
he parked the car in front of the house.|she rides her bike to school.|we drove to the {place}.|they flew to {country}.
we spent our holiday in {country}.|he comes from {country}.|she lives in {capital}.|it is {weather} today.|it was {weather} yesterday.
the weather is {weather}.|it is raining, so take an umbrella.|in winter it often snows.|it is snowing.
it was so cold that the lake was frozen.|the wind is strong.|the sun is shining.|in {season} it is {weather}.|i like the {season}.
at night you can see the {stars}.|the moon is bright.|i am {feeling}.|she is {feeling}.|he was very {feeling}.
i have not slept, so i am very tired.|i have not eaten, so i am very hungry.|are you {feeling}?|she was so {feeling} that she cried.
he laughed because he was happy.|she cried because she was sad.|he fell asleep in his {sleep}.|she went to bed because she was tired.
he broke his {body} when he fell.|my {body} hurts.|she hurt her {body}.|i brush my teeth every morning.|i brush my hair.
he washed his {wash} before {meal}.|she took a shower.|the doctor gave him some medicine.|the doctor looked at her {body}.
the patient is in hospital.|i have a headache.|he was ill and stayed in bed.|the thief was caught by the police.
the man was killed in the war.|the house is on fire.|he lit the candle with a match.|the fire was put out.|she cleaned the {room}.
he is in the {room}.|the {room} is {big}.|the house has {number} rooms.|there is a garden behind the house.
the flowers in the garden are {colour}.|the {thing} is {colour}.|her favourite colour is {colour}.|the walls are {colour}.|see you on {day}.
i will come on {day}.|my birthday is in {month}.|school starts in september.|christmas is in december.|we met last {day}.|today is {day}.
she was born in {month}.|good {time}!|he works at {time}.|they arrived in the {time}.|{name} and {name} are friends.|{name} is my {family}.
{name} lives in {capital}.|{name} bought a {thing}.|{name} gave {name} a {thing}.|{name} is a {job}.|my name is {name}.|{name} likes {food}.
{name} has a {pet}.|the capital of {land}|the capital of {land}|the capital of {land}|the capital of {land}|{tongue}|{tongue}|{fact}.
{fact}.|{fact}.|thank you very much.|thank you for your help.|i do not know.|what is your name?|how are you?|nice to meet you.
can you help me?|i love you.|i am sorry.|excuse me, where is the {place}?|please help me.|where are you from?|what time is it?
i don't understand.|have a nice day.
""".strip().replace("\n", "|").split("|")
WORDS |= {
    "soup": "hot cold salty thick spicy hot salty",
    "thingbox": "box bag drawer letter bottle window book",
    "pocket": "pocket bag purse",
    "chased": "cat rabbit ball car bird fox cat cat",
    "pets": "cats dogs birds rabbits fish",
    "playground": "garden park street yard snow sand",
    "pupil": "student pupil class boy girl child children students",
    "sea": "sea ocean lake river atlantic sea",
    "stars": "stars moon stars",
    "sleep": "bed chair room car",
    "wash": "hands face hands hair car",
}


CAPITAL, TONGUE, FACT = "the capital of {land}", "{tongue}", "{fact}."
FRAMES = [line for line in (Path(__file__).parent / "frames.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
# A person, and "his", "him" and "he" for it; those of the third person singular come first.
PERSONS = [
    ("she", "her", "her", "she", 8),
    ("he", "his", "him", "he", 8),
    ("{my mother|my sister|my wife|the woman|the girl|the old woman|my aunt|her daughter}", "her", "her", "she", 3),
    ("{my father|my brother|her husband|the man|the boy|the old man|his son|my friend}", "his", "him", "he", 4),
    ("{anna|mary|sarah|lisa|emma|kate|alice|jane}", "her", "her", "she", 1),
    ("{peter|john|tom|paul|david|james|jack|george}", "his", "him", "he", 1),
    ("i", "my", "me", "i", 6),
    ("we", "our", "us", "we", 3),
    ("they", "their", "them", "they", 3),
    ("{the children|my parents|the students|our neighbors}", "their", "them", "they", 1),
]
SINGULAR = 6  # so many of them are singular
OLDER = 0.35  # share of sentences from TEMPLATES
AGREEMENT = {"i": "am was have", "we": "are were have", "they": "are were have"}


def inflected(verb):
    """The third person singular."""
    first, space, rest = verb.partition(" ")
    if re.search(r"(?:[sxo]|ch|sh)$", first):
        first += "es"
    else:
        first = re.sub(r"(?<![aeiou])y$", "ie", first) + "s"
    return first + space + rest


class Everyday:
    """Draws such sentences. `facts` is the share of facts about countries, in addition to those among the templates."""

    def __init__(self, random, facts=0.0):
        self.random, self.facts = random, facts
        self.words = {name: found.split() for name, found in WORDS.items()}
        clean = lambda name: bool(re.fullmatch(r"[A-Za-z .'-]+", name))  # noqa: E731
        self.lands = [
            (land, capital, tongues)
            for land, capital, tongues in packages.countries()
            if capital and clean(land) and clean(capital) and "Island" not in land
        ]
        known = "France|Germany|Italy|Spain|Portugal|England|Ireland|Austria|Greece|Poland|Sweden|Norway|Denmark|Finland|Russia|Turkey|Egypt|China|Japan|India|Canada|Mexico|Cuba|Peru|Chile|Argentina|Hungary|Belgium|Netherlands|Switzerland|Czech Republic|Thailand|Vietnam|Kenya|Iran|Iraq|Israel|Ukraine|Romania|Bulgaria".split(
            "|"
        )
        self.known = [each for each in self.lands if each[0] in known] + [
            ("England", "London", ["English"]),
            ("the Netherlands", "Amsterdam", ["Dutch"]),
        ]

    def land(self):
        return self.random.choice(self.known if self.random.random() < 0.6 else self.lands)

    def one(self):
        if self.random.random() < self.facts:
            return self.filled(self.random.choice((CAPITAL, CAPITAL, CAPITAL, TONGUE, FACT)))
        return self.filled(self.random.choice(TEMPLATES if self.random.random() < OLDER else FRAMES))

    def filled(self, template):
        land, capital, tongues = self.land()
        if template == CAPITAL:
            return self.random.choice(
                (
                    f"the capital of {land} is {capital}.",
                    f"the capital of {land} is {capital}.",
                    f"{capital} is the capital of {land}.",
                    f"{capital} is the capital and largest city of {land}.",
                    f"{capital} is a city in {land}.",
                    f"{capital}, the capital of {land}, is a big city.",
                    f"he flew to {capital}, the capital of {land}.",
                )
            )
        if template == TONGUE:
            if not tongues:
                return self.one()
            tongue = self.random.choice(tongues)
            return self.random.choice(
                (
                    f"they speak {tongue} in {land}.",
                    f"people in {land} speak {tongue}.",
                    f"{tongue} is spoken in {land}.",
                    f"she comes from {land} and speaks {tongue}.",
                )
            )
        (person,) = self.random.choices(range(len(PERSONS)), [each[-1] for each in PERSONS])
        subject, his, him, he, _ = PERSONS[person]
        is_singular = person < SINGULAR
        be, was, have = (AGREEMENT.get(he) if not is_singular else "is was has").split()
        fixed = {"S": subject, "his": his, "him": him, "he": he, "is": be, "was": was, "has": have}
        fixed |= {"himself": {"i": "myself", "we": "ourselves", "they": "themselves"}.get(he, him + "self")}
        fixed |= {"country": land, "capital": capital}

        def word(match):
            name = match[1]
            if name == "fact":
                return self.random.choice(FACTS)
            if name in fixed:
                return fixed[name]
            if "|" not in name and name in self.words:
                return self.random.choice(self.words[name])
            found = self.random.choice(name.split("|"))
            return (inflected(found[1:]) if is_singular else found[1:]) if found.startswith("+") else found

        text = template
        while "{" in text:  # the innermost first
            text = re.sub(r"\{([^{}]*)\}", word, text)
        return text
