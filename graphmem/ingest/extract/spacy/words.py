"""Word lists of the spaCy extractor: nouns, fillers, and meanings of verbs."""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENTITY_TYPES: Mapping[str, str] = {
    "PERSON": "person",
    "ORG": "organization",
    "GPE": "location",
    "LOC": "location",
    "FAC": "location",
    "EVENT": "event",
    "PRODUCT": "technology",
    "LANGUAGE": "language",
    "WORK_OF_ART": "concept",
    "LAW": "concept",
    "NORP": "concept",
}
"""spaCy label (OntoNotes 5) → entity type. Dates, amounts and ordinals aren't entities."""

AMOUNTS = _words("MONEY QUANTITY PERCENT")
QUANTITIES = _words("DATE TIME CARDINAL ORDINAL") | AMOUNTS

FIRST_PERSON = _words("i me my mine myself we us our ours ourselves")
SECOND_PERSON = _words("you your yours yourself yourselves")
THIRD_PERSON: Mapping[str, str] = {
    **dict.fromkeys(_words("he him his himself"), "m"),
    **dict.fromkeys(_words("she her hers herself"), "f"),
}
POSSESSIVES = _words("my our your his her their its whose mine ours yours hers theirs")

KIN: Mapping[str, str] = {
    **dict.fromkeys(
        _words(
            "father dad daddy brother son husband boyfriend uncle grandfather grandpa nephew stepfather fiancé stepson"
        ),
        "m",
    ),
    **dict.fromkeys(
        _words(
            "mother mom mum mama sister daughter wife girlfriend aunt grandmother grandma niece stepmother fiancée "
            "stepdaughter"
        ),
        "f",
    ),
    **dict.fromkeys(
        _words(
            "parent child kid baby sibling twin cousin grandparent grandchild partner spouse friend colleague coworker "
            "neighbour neighbor boss manager teacher mentor roommate flatmate housemate student doctor therapist coach "
            "teammate family"
        ),
        "",
    ),
}
"""Nouns for persons by relationship → their gender, if the noun implies it."""

PETS = _words("dog cat puppy kitten pup pet hamster horse rabbit parrot turtle pony")
RELATIONAL = frozenset(KIN) | PETS
PARTNERS = _words("boyfriend girlfriend partner")
SPOUSES = _words("husband wife spouse")
PARTNER_OF: Mapping[str, str] = {
    **dict.fromkeys(SPOUSES, "married_to"),
    **dict.fromkeys(PARTNERS, "has_partner"),
}


def relation_to(noun: str) -> str:
    """Return the relation for a relational noun: "married_to" for "husband", "has_boss" for "boss"."""
    return PARTNER_OF.get(noun, f"has_{noun.replace(' ', '_')}")


SEVERAL = _words("friend kid child baby student teammate colleague coworker cousin neighbor neighbour teacher doctor")
"""Relationships to several persons: "my friend" in two messages may be different ones."""

VAGUE = _words(
    """
    thing things stuff something anything everything nothing someone somebody anyone anybody everyone everybody
    nobody lot lots bit ton tons loads bunch couple kind sort type way ways time times one ones other others day
    days night morning evening afternoon week month year hour minute moment today tomorrow yesterday tonight weekend
    while part place sense difference luck chance look idea ideas fun point matter case reason fact deal world life
    lives feeling feelings thought thoughts word words good best better worst more most much many all any some few
    each both blast joy honor honour pleasure shame mess touch try go start end step steps note mind heart care help
    love problem problems issue issues question questions answer advice tip tips news info information example hand
    eye eyes side top bottom middle rest whole half number amount level opportunity opportunities experience
    experiences memory memories journey support strength courage hope faith trust effort progress impact power
    attention favor favour plan plans goal goals self people person guy guys folk folks man men woman women choice
    option options decision decisions view perspective passion inspiration motivation energy vibe vibes spirit hello
    change changes work job jobs result results success bond connection reminder challenge challenges struggle
    struggles here there home outside inside this that these those who what which it they them him her he she we i
    you me us mine yours hers ours theirs itself myself yourself himself herself ourselves themselves yay wow oh hey
    hi thanks thank yeah yep yes no nope ok okay lol haha congrats congratulations sure please sorry cool great
    awesome amazing totally absolutely definitely wish cheers bye welcome gosh omg btw tbh aww ah hmm mm first
    second last next same smile smiles laugh peace happiness comfort comfortable room space sound shot edge key
    focus track break mistake pressure stress excitement touchstone piece pieces bits set sides minutes hours weeks
    months years nights mornings kick boost hit miss clue cup say meaning value role story stories detail details
    picture pic photo photos pics opinion thumb thumbs beauty pride doubt doubts interest feedback comment insight
    insights lesson lessons process situation circumstance area field aspect set-up setup stage phase balance sight
    scene mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday sunday
    finger fingers back spot ambition ambitions trouble control dream dreams connections path paths leads lead color
    colors colour colours roots emotion emotions freedom confidence growth creativity importance benefit benefits
    trick ability skills skill attitude mindset share
    """
)
"""Nouns and fillers that aren't entities unless a noun precedes them ("dance floor plan")."""

NEVER_HEADS = _words("one ones thing things stuff lot lots bit way ways time times day days self someone something")
MEASURES = _words(
    "share kind kinds type types sort sorts couple bunch lot lots pair set series variety piece ton tons number"
)
"""Nouns before "of" that only count what follows."""

EVALUATIVE = _words(
    """great good nice amazing awesome wonderful cool lovely beautiful incredible fantastic perfect best better big
    huge little small tiny real true whole own such new old cute fun special pretty super sweet important interesting
    exciting inspiring close dear happy sad bad worst terrible awful hard tough long short few many much several
    more most other another same different certain various some any all sure first last next main favorite favourite
    recent current entire total bit very really local fresh yummy delicious gorgeous stunning cozy lucky proud""",
)
"""Evaluative and unspecific adjectives, which are removed from names."""

UNTELLING_KIN = _words(
    "friend mom mum mama mother dad daddy father parent grandparent family colleague coworker teacher student boss "
    "neighbour neighbor teammate doctor cousin"
)
"""Things that everyone has; "has" with one of them isn't a fact."""
GENERIC = _words("food meal drink snack game photo picture clothes breakfast lunch dinner music water coffee tea")
"""Things that everyone eats, plays or takes; preferences for them are facts, events with them aren't."""

# Verbs --------------------------------------------------------------------------------------------

EMPTY_VERBS = _words(
    """think feel seem sound hope guess bet agree thank mean wish wonder suppose let imagine wait matter happen
    appreciate admire tell ask understand realize realise notice forget hear know say look believe doubt mind fit
    deserve cheer congratulate inspire encourage remind motivate impress surprise bring become stay remain go_on
    turn keep hold put set depend rock blow strike hit catch remember cause let's talk chat speak glad care cherish
    treasure value face handle deal stand capture reflect express embrace support allow enable check""",
)
"""Verbs that yield a fact only with a named object."""

NEVER_VERBS = _words(
    "seem sound guess bet thank mean wish wonder suppose let imagine wait matter happen agree hope think hear feel "
    "tell ask say remind congratulate"
)
"""Verbs that never yield a fact."""

STATES = _words(
    """be have own like love adore enjoy hate dislike prefer want need live reside work belong speak know study teach
    use play drink eat collect support run manage lead suffer contain include consist depend rely attend""",
)
STRONG_STATES = _words("like love adore enjoy hate dislike prefer own know belong contain include consist")
"""States that continue although an occasion is described in the past ("I loved the film")."""

NEGATABLE = _words("like love enjoy use eat drink want own speak know prefer have")
"""Verbs whose negation is a fact of its own."""

LIKING = _words("love like enjoy hate prefer adore dislike")
TRANSPARENT = _words("start begin continue keep get manage resume finish")
"""Verbs whose complement is the main verb: "started working at" means works at."""
STOPPING = _words("stop quit cease")
INTENTIONS: Mapping[str, str] = {
    "want": "wants_to",
    "hope": "hopes_to",
    "plan": "plans_to",
    "intend": "plans_to",
    "aim": "plans_to",
    "decide": "decided_to",
    "try": "tries_to",
    "dream": "hopes_to",
    "expect": "hopes_to",
    "promise": "promised_to",
    "agree": "agreed_to",
    "refuse": "refuses_to",
    "learn": "learns_to",
    "consider": "considers",
}
REPORTING = _words(
    "think say tell know hear learn realize realise discover mention believe find remember notice announce"
)
HEARSAY = _words("think say tell hear mention believe announce")
"""Reporting verbs that leave the truth open."""
BELIEVING = _words("think believe")
SAME_PAST = _words("quit put cut set hit let read shut hurt bet cost cast split spread burst upset bid rid shed")
"""Verbs with identical past and present forms."""
HABITUAL = _words("every each usually always often sometimes generally normally mostly typically")
ENDS: Mapping[str, tuple[str, ...]] = {
    "give_up": ("plays", "does", "uses", "eats", "drinks"),
    "quit": ("plays", "does"),
    "sell": ("owns", "has", "drives", "rides"),
    "give_away": ("owns", "has", "drives", "rides"),
    "leave_group": ("is_member_of", "is_part_of"),
    "quit_group": ("is_member_of", "is_part_of"),
}
"""Verb with its particle, and "_group" where its object is one → the relations to its object that end with it."""
ENDING_ANY = _words("give quit")
"""The verbs of these with which a bare noun means the whole kind ("tennis"); others require a definite noun."""
DEFINITE = _words("the my our his her their this that")
IMAGINING = _words("imagine suppose say assume pretend picture")
"""Imperatives that introduce a hypothesis."""
FICTIONS = _words(
    "dream dreams nightmare novel story film movie fiction fantasy daydream fairytale screenplay script simulation "
    "roleplay imagination"
)
"""Contexts in which nothing is factual."""
UNREAL_MODALS = _words("would could might may should must can shall ought need cannot")
UNREAL_MARKS = _words("if unless whether lest supposing provided wherever whenever whatever though")
UNSURE = _words("maybe perhaps probably possibly hopefully supposedly allegedly apparently almost nearly hardly barely")
NEGATORS = _words("not n't never no neither nor hardly barely rarely seldom nobody none nothing without")

CONCEPT_AFTER: Mapping[str, frozenset[str]] = {
    "for": _words("apply volunteer train vote search look prepare work fundraise campaign run play pay sign"),
    "in": _words(
        "participate enroll enrol specialize specialise major invest believe compete work join live result volunteer"
    ),
    "with": _words("work volunteer struggle collaborate live start experiment"),
    "about": _words("learn write read dream worry care teach"),
    "to": _words(
        "go move travel listen return drive fly belong switch subscribe convert lead migrate sign commute come"
    ),
    "on": _words("work rely focus decide settle depend live run go"),
    "at": _words("work volunteer study teach perform meet stay train eat intern speak compete camp"),
    "as": _words("work volunteer serve train"),
    "from": _words("graduate come move recover suffer retire resign"),
    "of": _words("consist dream die"),
    "into": _words("move look get"),
}
"""Preposition → verbs after which a common noun is an entity; after other verbs only names are."""
PREPOSITIONS = frozenset(CONCEPT_AFTER) | _words(
    "by near against under over across via onto toward towards along around"
)

ADJECTIVE_RELATIONS = _words(
    """
    allergic_to interested_in passionate_about afraid_of scared_of keen_on fond_of addicted_to obsessed_with
    fluent_in responsible_for engaged_to related_to famous_for known_for crazy_about good_at involved_in
    terrified_of similar_to based_in located_in proficient_in skilled_in intolerant_to
    """
)
PERSONAL = _words("live reside work quit resign retire marry divorce engage move")
"""Verbs that usually have a person as the subject."""
JOBS = _words("job position role internship gig post")
JOBLESS_VERBS = _words("quit leave lose resign want need apply get look hope seek hate_to decline refuse reject")
"""Verbs that state that "my job" isn't held, or no longer; "get" has its own rule."""
GETS = _words("get gets getting got gotten")
GETTING = _words("get land start take accept find begin")
HIRING = _words("hire employ recruit")
LIVED_IN = _words(
    "peace fear poverty hope harmony sin luxury exile town college university denial pain isolation darkness silence "
    "solitude comfort captivity squalor misery style freedom chaos doubt terror shame school suburbia campus nature "
    "uncertainty danger gratitude housing accommodation bed heaven hell paradise city downtown there here"
)
"""Bare nouns after "live in" that aren't towns."""
MOVING = _words("move relocate emigrate immigrate")
SWITCHING = _words("switch migrate convert")
DROPPING = _words("drop ditch abandon swap")
CHANGING = _words("raise increase cut reduce lower set double bring extend")
CURRENCIES = _words("euros euro dollars dollar pounds pound francs yen rupees kronor crowns zloty eur usd gbp chf")
GROUPS = _words(
    """club class gym church group team choir league band society association community program programme course
    university school college academy army navy party chat app discord facebook instagram twitter tiktok linkedin
    reddit slack zoom netflix spotify whatsapp telegram youtube union forum network challenge movement campaign""",
)
"""Things to join that aren't employers."""
OCCUPATIONS = _words(
    """nurse chef cook lead head intern assistant analyst clerk pilot scientist architect mechanic electrician
    consultant accountant nanny waitress janitor secretary receptionist surgeon vet librarian barista journalist
    doctor tutor guard guide host paramedic cto ceo cfo coo dean tailor butcher baker maid temp actuary""",
)
OCCUPATION_ENDINGS = ("er", "or", "ist", "ian")
NO_OCCUPATIONS = _words(
    """member volunteer customer speaker visitor newcomer beginner stranger star winner teenager subscriber supporter
    partner player user passenger participant contributor organizer organiser believer father mother brother sister
    daughter helper donor loser lover survivor dinner summer winter number newsletter order character corner letter
    monster computer master disaster matter outsider insider regular sponsor neighbor neighbour reminder breather
    hater fighter follower prisoner owner founder buyer voter commuter minor senior junior sophomore competitor
    finisher gamer reader viewer listener foreigner""",
)
STATUSES = _words("single married divorced engaged widowed separated")
PROJECT_STATUSES = _words(
    "done finished complete completed cancelled canceled blocked live deprecated delayed launched"
)
PLAIN_ADJECTIVES = _words(
    """vegan vegetarian pregnant retired unemployed transgender trans gay lesbian bisexual deaf blind diabetic autistic
    dyslexic jewish christian muslim buddhist hindu catholic colourblind colorblind gluten-free lactose-intolerant
    bilingual self-employed homeless nonbinary non-binary""",
)

WORKPLACES = _words(
    """hospital bank school university college company startup start-up firm restaurant café cafe library clinic
    agency hotel factory museum studio bakery shop store newspaper airline nonprofit shelter lab laboratory""",
)
ROLES_OF = _words(
    """fan member student owner founder co-founder supporter part resident native citizen graduate patron ambassador
    president director leader head author creator""",
)
MANAGEABLE = _words("team department store shop restaurant project company office branch hotel group studio business")
NO_PLACE = _words("night noon midnight home weekends times least first last once present work school")
LED = _words("team department office branch")
CREATING = _words("create build develop design invent compose")
CREATED = _words(
    "song poem painting novel book app website album film movie game tool library company program system sculpture"
)

OCCASIONS = _words(
    "baby party surgery accident wedding picnic meeting interview operation concert barbecue bbq birthday dinner lunch"
)
"""Occasions: "had" with one of them describes a past event, not a former state."""

_PAST_FORMS = """
    :be:was become:became begin:began break:broke bring:brought build:built buy:bought catch:caught choose:chose
    come:came cut:cut do:did draw:drew drink:drank drive:drove eat:ate fall:fell feel:felt fight:fought find:found
    fly:flew forget:forgot get:got give:gave go:went grow:grew have:had hear:heard hide:hid hit:hit hold:held
    keep:kept know:knew lead:led learn:learned leave:left lend:lent let:let lose:lost make:made meet:met pay:paid
    put:put quit:quit read:read ride:rode ring:rang rise:rose run:ran say:said see:saw seek:sought sell:sold
    send:sent set:set shoot:shot show:showed sing:sang sit:sat sleep:slept speak:spoke spend:spent stand:stood
    steal:stole swim:swam take:took teach:taught tell:told think:thought throw:threw understand:understood
    wake:woke wear:wore win:won write:wrote
"""
IRREGULAR_PAST: Mapping[str, str] = {
    lemma: form for lemma, _, form in (pair.partition(":") for pair in _PAST_FORMS.split())
}


def third_person(lemma: str) -> str:
    """Return the third person singular of a verb: "goes" for "go"."""
    if lemma in ("be", "have", "do", "go"):
        return {"be": "is", "have": "has", "do": "does", "go": "goes"}[lemma]
    if lemma.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{lemma}es"
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return f"{lemma[:-1]}ies"
    return f"{lemma}s"


def past(lemma: str, text: str, tag: str) -> str:
    """Return the simple past of a verb, given a form of it and the tag of that form."""
    if lemma in IRREGULAR_PAST:
        return IRREGULAR_PAST[lemma]
    if tag in ("VBD", "VBN") and text.isalpha():
        return text.lower()
    if lemma.endswith("e"):
        return f"{lemma}d"
    return f"{lemma[:-1]}ied" if lemma.endswith("y") and lemma[-2:-1] not in "aeiou" else f"{lemma}ed"
