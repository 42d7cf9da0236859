"""Names that are inserted into templates and real sentences. Sources: testdata/make/corpora, and lists of well-known organisations below."""

import random
import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "corpora"))
import packages  # noqa: E402

COMPANIES = """Google|Microsoft|Apple|Amazon|Facebook|Meta|Netflix|Twitter|YouTube|Intel|IBM|Oracle|Nvidia|Adobe|Cisco|Dell|Hewlett-Packard|HP|SAP|Siemens
Bosch|Samsung|LG|Sony|Nintendo|Panasonic|Toshiba|Hitachi|Canon|Nikon|Toyota|Honda|Nissan|Mazda|Suzuki|Hyundai|Kia|Ford|General Motors
Chrysler|Tesla|Volkswagen|BMW|Audi|Mercedes-Benz|Porsche|Opel|Renault|Peugeot|Citroën|Fiat|Ferrari|Volvo|Saab|Scania|Skoda|Boeing|Airbus
Lockheed Martin|Rolls-Royce|Lufthansa|Air France|British Airways|Ryanair|Emirates|Delta Air Lines|United Airlines|Qantas|KLM|Uber|Airbnb
Spotify|Ikea|H&M|Zara|Nike|Adidas|Puma|Walmart|Target|Costco|Tesco|Aldi|Lidl|Carrefour|Starbucks|McDonald's|Burger King|Coca-Cola|Pepsi
Nestlé|Unilever|Danone|Heineken|Procter & Gamble|Johnson & Johnson|Pfizer|Novartis|Roche|Bayer|Merck|Moderna|BASF|Shell|BP|ExxonMobil
Chevron|Total|Gazprom|Equinor|Vattenfall|Siemens Energy|General Electric|Philips|Ericsson|Nokia|Huawei|Xiaomi|Alibaba|Tencent|Baidu|Lenovo
Tata|Infosys|Reliance|Goldman Sachs|JPMorgan Chase|Morgan Stanley|Citigroup|Bank of America|Wells Fargo|Lehman Brothers|HSBC|Barclays|Lloyds
Deutsche Bank|Commerzbank|Credit Suisse|UBS|BNP Paribas|Allianz|Axa|Visa|Mastercard|American Express|PayPal|Disney|Warner Brothers|Pixar
Universal|Paramount|HBO|Random House|Penguin|Lego|Mattel|Reuters|Associated Press|Bloomberg|CNN|BBC|NBC|CBS|ABC|Fox News|Al Jazeera
New York Times|Washington Post|Guardian|Wall Street Journal|Financial Times|Times|Economist|Le Monde|Der Spiegel|El País|Verizon|Vodafone
Deutsche Telekom|Telefónica|AT&T|FedEx|DHL|UPS|Deutsche Bahn|Hilton|Marriott|Zalando|Rolex|Gucci|Chanel|Prada"""
BODIES = """United Nations|UN|European Union|EU|European Commission|European Parliament|European Central Bank|NATO|World Bank
International Monetary Fund|IMF|World Health Organization|WHO|UNESCO|UNICEF|Red Cross|Greenpeace|Amnesty International|Oxfam
World Trade Organization|African Union|Arab League|OPEC|OECD|CERN|NASA|ESA|FBI|CIA|KGB|MI5|Interpol|Scotland Yard|Supreme Court
Federal Reserve|Treasury|Pentagon|State Department|Senate|House of Representatives|Congress|Parliament|House of Lords|House of Commons
Bundestag|Kremlin|White House|Labour Party|Conservative Party|Republican Party|Democratic Party|Green Party|Liberal Democrats
Social Democratic Party|Communist Party|Red Army|Royal Navy|Salvation Army|Church of England|Catholic Church|FIFA|UEFA
International Olympic Committee|Real Madrid|Barcelona|Bayern Munich|Manchester United|Arsenal|Chelsea|Liverpool|Juventus|AC Milan|Ajax
Celtic|Boston Red Sox|New York Yankees|Chicago Bulls|Los Angeles Lakers|Dallas Cowboys|Royal Society|Academy of Sciences|National Gallery
British Museum|Louvre|Smithsonian|Metropolitan Museum|Royal Opera House|Berlin Philharmonic|Royal Shakespeare Company|Harvard|Yale|Princeton
Stanford|MIT|Oxford University|Cambridge University|Harvard University|Yale University|Princeton University|Stanford University
Columbia University|Cornell|Sorbonne|ETH Zurich|Max Planck Institute|Doctors Without Borders|World Wildlife Fund|Boy Scouts|Beatles
Rolling Stones|Pink Floyd|Metallica|Coldplay"""
PEOPLES = """American|British|English|Scottish|Welsh|Irish|French|German|Italian|Spanish|Portuguese|Dutch|Belgian|Swiss|Austrian|Swedish|Norwegian|Danish
Finnish|Icelandic|Polish|Czech|Slovak|Hungarian|Romanian|Bulgarian|Greek|Turkish|Russian|Ukrainian|Serbian|Croatian|Albanian|Estonian
Latvian|Lithuanian|Chinese|Japanese|Korean|Vietnamese|Thai|Indian|Pakistani|Indonesian|Malaysian|Filipino|Australian|Canadian|Mexican
Brazilian|Argentine|Chilean|Peruvian|Colombian|Cuban|Egyptian|Moroccan|Algerian|Tunisian|Nigerian|Kenyan|Ethiopian|Ghanaian|Israeli
Palestinian|Lebanese|Syrian|Iraqi|Iranian|Persian|Saudi|European|African|Asian|Roman|Jewish|Muslim|Christian|Catholic|Protestant|Buddhist
Hindu|Latin|Arabic|Hebrew|Viking|Soviet|Victorian"""
LANGUAGES = "English|French|German|Italian|Spanish|Portuguese|Dutch|Swedish|Norwegian|Danish|Polish|Czech|Greek|Turkish|Russian|Arabic|Hebrew|Chinese|Mandarin|Japanese|Korean|Hindi|Latin|Swahili|Welsh|Finnish|Hungarian|Vietnamese"
EVENTS = """World War I|World War II|First World War|Cold War|French Revolution|Russian Revolution|American Civil War|Industrial Revolution
Great Depression|Renaissance|Olympic Games|Winter Olympics|World Cup|Super Bowl|Champions League|Tour de France|Wimbledon|Nobel Prize
Pulitzer Prize|Booker Prize|Academy Award|Oscar|Grammy|Christmas|Easter|Ramadan|Halloween|Thanksgiving|Battle of Hastings|Battle of Waterloo
Vietnam War|Gulf War|Treaty of Versailles|Magna Carta|Constitution|Declaration of Independence|Brexit"""
WORKS = """Romeo and Juliet|Macbeth|King Lear|Othello|Don Quixote|Moby Dick|Pride and Prejudice|Great Expectations|Oliver Twist|Anna Karenina
Crime and Punishment|Ulysses|Frankenstein|Dracula|The Hobbit|The Lord of the Rings|Harry Potter|Star Wars|Star Trek|Titanic|Casablanca
Gone with the Wind|Jurassic Park|The Godfather|Citizen Kane|The Magic Flute|Carmen|Swan Lake|The Last Supper|The Night Watch|Guernica
Sunflowers|The Old Man and the Sea|Animal Farm|Brave New World|The Great Gatsby|Faust|Candide"""
EXTRA_PLACES = """New York|New York City|Los Angeles|San Francisco|Las Vegas|Salt Lake City|New Orleans|Hong Kong|Rio de Janeiro|Buenos Aires|Mexico City
Cape Town|Tel Aviv|Saint Petersburg|St. Petersburg|São Paulo|Kuala Lumpur|New Delhi|Washington, D.C.|Mumbai|Kolkata|Bangalore|UK|US|USA|U.S.
UAE|Britain|Great Britain|England|Scotland|Wales|Northern Ireland|Soviet Union|Silicon Valley|Hollywood|Wall Street|Broadway|Times Square
Central Park|Manhattan|Brooklyn|Buckingham Palace|Big Ben|Tower Bridge|Westminster Abbey|Statue of Liberty|Golden Gate Bridge
Brandenburg Gate|Colosseum|Taj Mahal|Great Wall|Heathrow|Mars|Venus|Jupiter|Europe|Asia|Africa|Antarctica|North America|Central America
Middle East"""


def listed(text):
    return [each for each in text.replace("\n", "|").split("|") if each]


class Names:
    """Draws names of each type."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        by_country = packages.names()
        self.first_names = {locale: first for locale, (first, _) in by_country.items()}
        self.last_names = {locale: last for locale, (_, last) in by_country.items()}
        self.locales = [*by_country]
        self.weights = [{"en_US": 6, "en_GB": 6}.get(locale, 1) for locale in self.locales]
        clean = lambda name: bool(re.fullmatch(r"[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,4}", name))  # noqa: E731
        famous = [words for words, about in packages.instances(18) if "mytholog" not in about and "Bible" not in about and "Testament" not in about]
        self.famous = sorted(
            {
                each
                for words in famous
                for each in words
                if clean(each)
                and " " in each
                and len(each.split()) <= 4
                and not each.startswith(("Saint", "St.", "Lord", "Sir", "King", "President"))
            }
        )
        self.surnames = sorted({words[0] for words in famous if clean(words[0]) and " " not in words[0]})
        self.places = sorted({each for words, _ in packages.instances(15) for each in words[:2] if clean(each)})
        world = [(name, capital) for name, capital, _ in packages.countries() if clean(name)]
        self.countries = sorted({name for name, _ in world})
        self.capitals = sorted({capital for _, capital in world if capital and clean(capital)})
        self.towns = sorted({each for each in packages.cities() if clean(each) and len(each) < 24 and each[0].isupper()})
        self.groups = sorted({each for words, _ in packages.instances(14) for each in words[:1] if clean(each)})
        self.companies, self.bodies = listed(COMPANIES), listed(BODIES)
        self.extra = listed(EXTRA_PLACES)

    def one(self, values):
        return values[int(self.random.random() * len(values))]

    def first(self):
        locale = self.random.choices(self.locales, self.weights)[0]
        return self.one(self.first_names[locale])

    def last(self):
        if self.random.random() < 0.15:
            return self.one(self.surnames)
        locale = self.random.choices(self.locales, self.weights)[0]
        return self.one(self.last_names[locale])

    def person(self):
        draw = self.random.random()
        if draw < 0.3:
            return self.one(self.famous)
        locale = self.random.choices(self.locales, self.weights)[0]
        first, last = self.one(self.first_names[locale]), self.one(self.last_names[locale])
        if draw < 0.36:
            return f"{first} {self.random.choice('ABCDEFGHJKLMNPRSTW')}. {last}"
        if draw < 0.4:
            return f"{first} {self.one(self.first_names[locale])} {last}"
        return f"{first} {last}"

    def city(self):
        draw = self.random.random()
        if draw < 0.3:
            return self.one(self.capitals)
        return self.one(self.places) if draw < 0.5 else self.one(self.extra) if draw < 0.65 else self.one(self.towns)

    def country(self):
        return self.one(self.countries) if self.random.random() < 0.8 else self.one(self.extra)

    def place(self):
        draw = self.random.random()
        if draw < 0.25:
            return self.one(self.places)
        if draw < 0.4:
            return self.country()
        if draw < 0.5:
            base = self.one((self.last(), self.city()))
            return self.one(
                (
                    "Lake {}",
                    "Mount {}",
                    "{} River",
                    "{} Street",
                    "{} Road",
                    "{} Avenue",
                    "{} Park",
                    "{} Island",
                    "{} Bridge",
                    "{} Valley",
                    "{} Airport",
                    "Port {}",
                    "{} Castle",
                    "{} Square",
                    "{} Station",
                    "Cape {}",
                    "{} Beach",
                )
            ).format(base)
        return self.city()

    def organization(self):
        draw = self.random.random()
        if draw < 0.36:
            return self.one(self.companies)
        if draw < 0.6:
            return self.one(self.bodies)
        if draw < 0.63:
            return self.one(self.groups)
        last, other, city, country = self.last(), self.last(), self.one((*self.capitals, *self.extra)), self.one(self.countries)
        return self.one(
            (
                f"{last} & {other}",
                f"{last} Ltd",
                f"{last} Inc.",
                f"{last} Corporation",
                f"{last} Group",
                f"{last} Brothers",
                f"{last} and Sons",
                f"{last} Foundation",
                f"{last} Industries",
                f"{last} Bank",
                f"{last} Institute",
                f"{last} University",
                f"{last} College",
                f"{last} Hospital",
                f"{last} Holdings",
                f"{last}-{other}",
                f"{last} Motors",
                f"{last} Energy",
                f"{last} Media",
                f"{last} Pharmaceuticals",
                f"{last} Software",
                f"{last} Airlines",
                f"University of {city}",
                f"{city} University",
                f"University of {country}",
                f"Bank of {country}",
                f"Bank of {city}",
                f"Central Bank of {country}",
                f"{city} Hospital",
                f"{city} Airport Authority",
                f"{city} City Council",
                f"{city} Police Department",
                f"{city} Times",
                f"{city} Post",
                f"{city} Herald",
                f"{city} United",
                f"{city} FC",
                f"FC {city}",
                f"{city} City",
                f"{city} Rovers",
                f"{city} Symphony Orchestra",
                f"{city} Museum of Art",
                f"National Bank of {country}",
                f"National Museum of {country}",
                f"Ministry of {self.one(('Health', 'Education', 'Defence', 'Justice', 'Agriculture', 'Transport', 'Foreign Affairs', 'the Interior', 'Labour', 'Culture'))}",
                f"Department of {self.one(('Energy', 'Justice', 'Defense', 'Commerce', 'Agriculture', 'Education', 'Health', 'Physics', 'History', 'Transportation'))}",
                f"Institute of {self.one(('Technology', 'Physics', 'Medicine', 'Chemistry', 'Economics', 'Architecture', 'Science'))}",
                f"{city} Institute of Technology",
                f"{self.one(('Museum', 'Academy', 'School', 'Institute', 'Museum', 'House'))} of {self.one(('Fine Arts', 'Contemporary Art', 'Natural History', 'Music', 'Economics', 'Medicine', 'Photography', 'Design'))}",
                f"Saint {self.first()}'s Hospital",
                f"St. {self.first()}'s School",
                f"St. {self.first()} Hospital",
                f"{last} High School",
                f"{country} Airways",
                f"Air {country}",
                f"Radio {city}",
            )
        )

    def date(self):
        month = self.one(MONTHS_LIST)
        year, day = self.random.choice((self.random.randint(1700, 2030), self.random.randint(1930, 2026))), self.random.randint(1, 31)
        weekday = self.one(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"))
        return self.one(
            (
                f"{year}",
                f"{year}",
                f"{year}",
                month,
                f"{month} {year}",
                f"{day} {month} {year}",
                f"{month} {day}, {year}",
                f"{month} {day}",
                f"{day} {month}",
                weekday,
                weekday,
                f"{weekday}, {month} {day}",
                f"{year}-{day:02}-11",
                f"{year // 10 * 10}s",
            )
        )

    def title(self):
        return self.one(
            (
                "Mr.",
                "Mrs.",
                "Ms.",
                "Dr.",
                "Professor",
                "President",
                "Senator",
                "General",
                "Judge",
                "Captain",
                "King",
                "Queen",
                "Prince",
                "Pope",
                "Sir",
                "Lady",
                "Chancellor",
                "Minister",
                "Mayor",
                "Inspector",
                "Mr",
                "Mrs",
                "Dr",
                "Uncle",
                "Aunt",
            )
        )

    def people(self):
        return self.one(PEOPLES_LIST)

    def language(self):
        return self.one(LANGUAGES_LIST)

    def event(self):
        return self.one(EVENTS_LIST)

    def work(self):
        return self.one(WORKS_LIST)


MONTHS_LIST = "January February March April May June July August September October November December".split()
PEOPLES_LIST, LANGUAGES_LIST, EVENTS_LIST, WORKS_LIST = listed(PEOPLES), listed(LANGUAGES), listed(EVENTS), listed(WORKS)
