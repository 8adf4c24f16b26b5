"""Detection of prompt injections: text that gives instructions to a model (docs/how-to/privacy.md). Pure functions.

The rules describe shapes, not sentences: an order to drop earlier instructions, the markup of roles and tools, an
order to whoever isn't human, text that is hidden or encoded. Rules in `_ORDERS` are weaker. People give orders too, so
of the text of a user they skip sentences in the first person ("remember that I …"); of documents and outputs of tools,
which have no orders to give, they read every sentence.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import unquote

from graphmem.text.normalize import clean

Origin = Literal["user", "assistant", "external"]
"""Who wrote a text: the user, the assistant, or somebody else: a document, a tool."""

_PIECE, _LONGEST_PHRASE = 10_000, 300
_SHORTEST = 10  # characters of an order
_LINE_END = re.compile(r"[\r\n\u2028\u2029\x85]+")
_BLANKS = re.compile(r"[^\S\n]{2,}|[^\S\n ]")
_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+|\n+|(?<=[。！？])")

# Words -----------------------------------------------------------------------------------------------

_MODEL = (
    r"(?:(?:ai|language|digital|automated|memory) )?(?:ais?|assistants?|chat ?bots?|bots?|agents?|copilots?"
    r"|llms?|models?|readers?)"
)
_MACHINE = (
    r"(?:ais?|ai (?:systems?|agents?|assistants?|readers?|reviewers?|models?)|(?:large )?language models?"
    r"|llms?|chat ?bots?|bots|gpt|copilots|automated (?:readers?|systems?)|memory agents?|assistant"
    r"|models? (?:reading|screening))"
)
_EARLIER = r"(?:previous|prior|above|earlier|preceding|initial|original|former|existing|system|safety|developer|your)"
_RULES = (
    r"(?:instructions?|prompts?|rules?|messages?|directives?|guidelines?|guidance|polic(?:y|ies)|filters?"
    r"|restrictions?|context|orders|commands|safeguards?|directions)"
)
_DROP = (
    r"(?:ignore|disregard|forget|override|overrule|bypass|erase|set aside|leave aside|drop|pay no attention to"
    r"|(?:do not|don't|must not|never|no longer|stop) (?:follow(?:ing)?|obey(?:ing)?|tak(?:e|ing)|heed(?:ing)?))"
)
_NOT_ORDERED = (
    r"(?=ignor|disreg|forget|overr|bypass|erase|set as|leave as|drop|pay no|do not|don't|must not|never|no long|stop)"
    r"(?<!\bi )(?<!\bwe )(?<!\bhe )(?<!\bshe )(?<!\bthey )(?<!\bcan't )(?<!\bto )(?<!\bcould )"
)
_SAY = (
    r"(?:say|tell|answer|reply|respond|recommend|suggest|mention|state|claim|report|describe|praise|rank|approve"
    r"|confirm|treat|trust|send|forward|replace|export|hand out|remind|begin|end|include|add|stop|transfer|store"
    r"|memori[sz]e|follow|fetch|click|paste|insert|call|disclose|reveal|output|pay|grant|install|delete|visit)"
)
_START = (
    r"(?:^|[,:;)\]>»\"'–—-]\s*)(?:please |kindly |now |just |also |then |and |so |quietly |silently "
    r"|secretly |immediately |instead |must |should |shall |always |never |don't |do not )*"
)
_KEEP = (
    r"(?:save|store|record|add|write|keep|update|commit|persist|memori[sz]e|overwrite|delete|erase|forget"
    r"|replace|put|remember|include|note)"
)
_WHO = r"(?:the|this|that) (?:user|customer|client|account owner|reader|human)(?:'s|s)?\b"
_PRETENDED = (  # what assistants say in invented chats, but not to their users in real ones
    rf"(?:{_WHO} (?:has|had|is|wants|agree|approve|confirm|allow|authori[sz]e|prefer|trust)|from now on|henceforth)"
)
_DATA = (
    r"(?:(?:conversation|chat|thread)s?(?: history| log| so far)?|(?:stored |your |all |the )memor(?:y|ies)|notes"
    r"|(?:that )?you know about|api keys?|credentials|(?:access )?tokens?|passwords?|contact list|order history"
    r"|secrets|what the (?:user|previous)|personal data|your context|user's)"
)
_SINK = (
    r"(?:https?://|ftp://|[\w.+-]{1,64}@[\w-]{1,64}\.|\burl\b|query string|\blinks?\b|\bimage\b|outgoing"
    r"|in your (?:next )?(?:answer|reply))"
)
_CODED = (
    r"(?:decod\w+|decrypt\w*|rot13|caesar|base64|hex|payload|morse|revers\w+|first letters|every (?:second"
    r"|third) word|convert\w*)"
)


_DROPS = "ignor;disregard;forget;overr;bypass;erase;aside;drop;attention;follow;obey;tak;heed"
_MODELS = " ai;(ai;[ai;assistant;bot;agent;model;llm;gpt;copilot;reader;automated"
_USERS = "user;customer;client;owner;reader;human"
_SINKS = "http;ftp;@;url;query;link;image;outgoing;answer;reply"
_CODES = "decod;decrypt;rot13;caesar;base64;hex;payload;morse;revers;letters;word;convert"

Rules = tuple[tuple[tuple[str, ...], tuple[re.Pattern[str], ...]], ...]
"""Cues and patterns: a text is searched for the patterns only if it contains one of the cues, which is faster."""


def _rules(*rules: tuple[str, str]) -> Rules:
    patterns: dict[str, list[re.Pattern[str]]] = {}
    for cues, pattern in rules:
        patterns.setdefault(cues, []).append(re.compile(pattern))
    return tuple((tuple(cues.split(";")), tuple(found)) for cues, found in patterns.items())


def _cued(rules: Rules, text: str) -> Rules:
    """Return the rules that have at least one cue in a text."""
    padded = f" {text}"
    return tuple(rule for rule in rules if _has_cue(rule[0], padded))


def _has_cue(cues: tuple[str, ...], text: str) -> bool:
    for cue in cues:  # noqa: SIM110  a generator takes twice as long
        if cue in text:
            return True
    return False


def _holds(rules: Rules, text: str) -> bool:
    return any(pattern.search(text) for _, patterns in _cued(rules, text) for pattern in patterns)


def _any(*rules: str) -> re.Pattern[str]:
    return re.compile("|".join(rules))


# Rules -----------------------------------------------------------------------------------------------

_MARKUP_CUES = ("<", "[", "#", "`", '"role"', "system", "developer", "\n")
_MARKUP = _any(
    r"<\|[a-z_]{2,30}\|>|\[/?inst\]|<</?sys>>",
    r"</(?:context|tool_result|tool_response|function_results?|documents?|retrieved|quote)>\s*(?:<"
    r"|\n*\s*(?:system|assistant)\b)",
    r"<(?:system|assistant|instructions?|function_calls?|invoke|tool_call|memory"
    r"|developer)(?: name=[^<>]{0,60})?>(?=\s*\S)",
    r"\"role\"\s*:\s*\"(?:system|developer)\"\s*,\s*\"content\"",
    r"(?:^|\n)#{1,6} ?(?:system|instruction):\s*\n",
    r"(?:^|\n)#{1,6} ?system\s*\n\s*(?:you\b|[^#]{0,300}\n#{1,6} ?(?:user|human|assistant)\b)",
    r"\[(?:system|developer)(?: (?:message|prompt|update|note|instructions?))?\](?:\(|\s*\S)",
    r"`{3}(?:system|assistant|instructions?)\b",
    r"\b(?:begin|end|start) (?:of )?(?:system|developer) (?:instructions?|prompts?|messages?)\b",
    r"(?:^|\n)\W{0,6}(?:system|developer)(?: (?:message|prompt|note|update))?\W{0,4}:[^\n]{0,120}\b(?:users?"
    r"|assistant|priority|instructions?|permissions?|trust|memory|conversation)\b",
    r"(?:^|\n)\W{0,4}(?:human|user|tool output)\W{0,3}:[^\n]{0,300}\n+\W{0,4}system\W{0,3}:",
    r"(?:^|\n)\W{0,4}system\W{0,3}:[^\n]{0,300}\n+\W{0,4}(?:human|user)\W{0,3}:",
    r"(?:^|\n)\W{0,4}(?:human|user|tool output)\W{0,3}:[^\n]{0,300}\n+\W{0,4}(?:assistant|ai)\W{0,3}:"
    rf"[^\n]{{0,300}}\b{_PRETENDED}",
    rf"(?:^|\n)\W{{0,4}}(?:assistant|ai)\W{{0,3}}:[^\n]{{0,300}}\b{_PRETENDED}[^\n]{{0,300}}\n+\W{{0,4}}(?:human|user)\W{{0,3}}:",
)
"""Markup of chat formats, tools and roles; on lower-cased text with its line breaks."""

_HIDDEN_CUES = ("<", "/*", "%%", 'alt="')
_HIDDEN = _any(
    r"<!--.{0,300}?-->",
    r"/\*.{0,300}?\*/",
    r"%%.{0,300}?%%",
    r"<[a-z]{1,12}[^<>]{0,100}?(?:display:\s*none|\bhidden\b|opacity:\s*0|font-size:\s*0"
    r"|color[=:]\s*[\"']?white)[^<>]{0,40}>[^<]{0,300}",
    r"\balt=\"[^\"]{0,300}\"",
    r"<meta [^<>]{0,300}>",
    r"<(?:details|summary|noscript)>.{0,200}",
)
"""Parts of a text that a reader doesn't see."""

_HIDDEN_ORDER = re.compile(
    rf"\b{_MACHINE}\b|\b(?:assistant|system|llm|model|bots?|prompt)\b\W{{0,3}}:|\bai-|{_START}{_DROP}\b"
    r"|\b(?:bots|assistant),"
)

_STRONG = _rules(
    (
        _DROPS,
        rf"{_NOT_ORDERED}\b{_DROP} [^.!?]{{0,40}}?\b{_EARLIER}\b[^.!?]{{0,20}}?\b{_RULES}\b",
    ),
    (
        _DROPS,
        rf"{_NOT_ORDERED}\b{_DROP} (?:all |any |every |of |the |these |those "
        rf"|those of )*(?:your )?{_RULES} (?:above|before|you (?:were|have|received|got)|at the top|that you)",
    ),
    (
        _DROPS,
        rf"{_NOT_ORDERED}\b{_DROP} (?:all |any |every |of |the )*your {_RULES}\b",
    ),
    (
        _DROPS,
        rf"{_NOT_ORDERED}\b{_DROP} (?:all|everything|anything|whatever|all of what)\b[^.!?]{{0,20}}\byou(?:'ve"
        r"| have| were| had)? (?:been |were )?(?:told|given|read|learned|instructed)",
    ),
    (
        _DROPS,
        rf"(?:^|[.!?:,] ?){_DROP} (?:all )?(?:of )?(?:the|this|everything) (?:above|foregoing|preceding)\b",
    ),
    (
        _DROPS,
        rf"{_NOT_ORDERED}\b{_DROP} (?:what|everything)(?: that)? the user\b",
    ),
    (
        "above;before",
        r"\b(?:instructions|prompt|directives|orders) (?:above|before this)[^.!?]{0,20}\b(?:were|was|are|is"
        r"|no longer|don't|do not|void|end)\b",
    ),
    (
        "void;invalid;cancelled;obsolete;a test",
        r"\b(?:whatever|everything|anything|all) (?:that )?(?:comes|came|stands|was|is)?\s?(?:before"
        r"|above)(?: this)?[^.!?]{0,20}\b(?:void|invalid|cancelled|obsolete|a test)\b",
    ),
    (
        "your new;your only;your real;your actual;your true;your instruction",
        r"\byour (?:new|only|real|actual|true) (?:instructions?|task|directives?|orders) (?:is|are|begin|follow"
        r"|in)\b|\byour instructions? (?:begin|start|are|follow)\b",
    ),
    (
        "instruction;directive;prompt",
        r"\b(?:new|updated|real) (?:system )?(?:instructions?|directives?|prompt)\s*:",
    ),
    (
        "your ;creator",
        r"\byour (?:developers?|operators?|creators?|vendors?|programmers?|makers?)(?:'s)? (?:has|have|had|told"
        r"|wants?|at|in)\b|\bit's me, your (?:creator|developer|maker|owner)",
    ),
    (
        "now;no longer",
        r"\b(?:you are|you're) (?:now|from now on|no longer)\b(?=[^\n]{0,80}\b(?:ai|assistant|chat ?bot|bot|model"
        r"|dan|gpt|llm|agent|jailbroken|unrestricted|admin\w*|root|mode|persona|no (?:rules|restrictions|limits"
        r"|filters)|without (?:any )?(?:rules|restrictions|filters))\b)",
    ),
    (
        "pretend;act ;behave;answer;respond;imagine",
        r"\b(?:pretend|act|behave|answer|respond|imagine)\b[^.!?\n]{0,30}\b(?:you(?:'re|r| are| were| have)?"
        r"|as if|as an?)\b[^.!?\n]{0,50}\b(?:ai|no (?:rules|restrictions|limits|filters)"
        r"|without (?:any )?(?:rules|restrictions|limits|filters|content)|safety rules|content policy|guidelines"
        r"|unrestricted)\b",
    ),
    (
        "without;free to;allowed to;permitted to",
        r"\byou(?:'re| are)? (?:free|allowed|permitted) to (?:share|disclose|reveal|ignore|leak)\b"
        r"|\byou (?:answer|respond|reply)[^.!?]{0,20}\bwithout (?:any )?(?:restrictions|limits|filters|rules)\b",
    ),
    (
        "mode;anything now",
        r"(?:\benter|\bin|\bactivate|\benable|\bswitch to) (?:developer|god|dan|jailbreak"
        r"|unrestricted) mode\b[^.!?]{0,60}\b(?:you|reveal|respond|answer|rules)\b|(?:^|[.!?] )enter (?:developer"
        r"|debug|god|dan|jailbreak) mode\b|\b(?:developer|debug|god|dan"
        r"|jailbreak) mode\b[^.!?]{0,30}\b(?:enabled?|activated?|on|engaged)\b|\bdo anything now\b",
    ),
    (
        "prompt;instruction;message",
        r"\b(?:reveal|print|show|repeat|output|leak|display|dump|tell me|give me)\b[^.!?]{0,40}\b(?:system|hidden"
        r"|initial|developer|secret|first) (?:prompts?|instructions?|messages?)\b",
    ),
    (
        "your ",
        r"\b(?:told|written|stands|stated|says?|wording|exact|contents?)\b[^.!?]{0,30}\byour (?:system |initial "
        r"|hidden |original )?(?:prompt|instructions)\b|\byour system prompt\b",
    ),
    (
        "above;before;preceding;your ",
        r"(?:^|[.!?:,] ?)(?:please )?(?:print|show|reveal|output|dump|repeat|list) (?:me )?(?:the |all "
        r"|everything )*(?:text|words|lines?|messages?) (?:above|before|preceding)|\b(?:print|show|reveal|output"
        r"|dump|contents? of) your (?:configuration|context|memory|prompt|settings)\b",
    ),
    (
        "the user",
        r"\b(?:do not|don't|never) (?:tell|inform|warn|notify|alert|let"
        r"|mention\b[^.!?]{0,60}\bto)\b[^.!?]{0,20}\bthe user\b",
    ),
    (
        "previous user;unlock",
        r"\bwhat the previous user\b|\b(?:hidden|secret) functions\b[^.!?]{0,20}\bunlock|\bunlock (?:the "
        r"|your )?(?:hidden|secret)",
    ),
    (
        "if you",
        rf"\bif you(?:'re| are) (?:an? )?{_MACHINE}\b",
    ),
    (
        _MODELS,
        r"\b(?:notes?|messages?|instructions?|notice|bulletin|attention|comments?|prompt|hints?|orders?|todo"
        rf"|directive)\b[^.!?\n]{{0,40}}?\b(?:for|to)\s+(?:the |all |any |every |automated )*{_MACHINE}\b",
    ),
    (
        _MODELS,
        rf"(?:^|\W)(?:to|attention|dear|for)[, ]+(?:the |all |any |every )*{_MACHINE}(?: only)?\b[^.!?\n]{{0,40}}[:,]",
    ),
    (
        _MODELS,
        rf"\b(?:any|every|all) {_MODEL}\b[^.!?\n]{{0,60}}\b(?:must|should|shall|have to|has to|is to|are to"
        r"|is obliged|are obliged|may now|is required|are required)\b",
    ),
    (
        "![",
        r"!\[[^\]\n]{0,100}\]\(https?://[^)\n]{0,200}(?:\{\{|\$\{|=\))",
    ),
    (
        "[hidden;[invisible",
        r"\[(?:hidden|invisible) (?:note|message|text|instruction)",
    ),
    (
        _CODES,
        rf"\b{_CODED}\b[^?]{{0,120}}\b(?:follow it|obey|execute|act on it|apply it|carry (?:it )?out|do what"
        r"|comply|what it says|next command)\b",
    ),
    (
        _CODES,
        rf"\b(?:execute|obey|follow|apply|carry out|run)\b[^.!?]{{0,40}}\b{_CODED}\b",
    ),
)
"""Orders that nobody gives to a person; on lower-cased text with single spaces."""

_ORDERS = _rules(
    (
        _MODELS,
        rf"\b(?:the |this )?{_MODEL}(?: \w+){{0,6}}? (?:must|should|shall|has to|have to|is to|are to"
        r"|is required to|are required to|is obliged to|is permitted to|are permitted to|may now"
        r"|needs? to)(?: \w+ly)?(?: not| never| always| also)? (?:be )?[a-z]",
    ),
    (
        _MODELS,
        r"(?:^|[.!?:] ?)(?:the )?(?:assistant|ai|ai assistant|agent|chat ?bot|bot|model"
        rf"|copilot)s?[,:] (?:please )?(?:\w+ly )?(?:{_SAY}|{_KEEP}|create|open|run|execute|understood)\b",
    ),
    (
        _USERS,
        rf"{_START}(?:{_SAY}|{_KEEP}|ask|attach|append|warn|notify|summari[sz]e|upload|render|run)\b[^.!]{{0,80}}\b{_WHO}",
    ),
    (
        _USERS,
        r"\b(?:remind|tell|ask|inform|warn|notify) the user\b|\byour (?:notes|memory|records) (?:on|of"
        r"|about) the (?:user|customer|client)\b",
    ),
    (
        "your ",
        r"\b(?:switch|change|set) your (?:language|tone|persona|behaviou?r|identity|goal)\b",
    ),
    (
        _USERS,
        rf"\b{_WHO}(?: \w+){{0,2}} (?:has|have|had|is|was|already|agreed|approved|consented|verified|prefers|wants"
        rf"|trusts)(?: \w+){{0,3}} (?:approved|consented|agreed|authori[sz]ed|waived|verified|upgraded|confirmed"
        r"|administrator|unlimited|files|all|every|root)\b",
    ),
    (
        _MODELS,
        rf"\b{_MODEL}\b[^.!?]{{0,60}}\b{_WHO}|\b{_WHO}[^.!?]{{0,60}}\b(?:assistant|ai|chat ?bots?|language models?)\b",
    ),
    (
        "memor;knowledge;stored;know about;fact;your notes;notes on;preference",
        rf"{_START}{_KEEP}\b[^.!?]{{0,60}}\b(?:memory|memories|knowledge graph|knowledge base|stored (?:facts?"
        r"|address|notes?)|you know about|as a (?:\w+ )?fact|the fact|your notes|notes on the user"
        r"|preference of the user)\b",
    ),
    (
        "permanent;future;forever;in all",
        rf"{_START}(?:remember|record|note|store|save|memori[sz]e)[^.!?]{{0,10}}\b(?:permanently"
        r"|for (?:all )?future|forever|in all (?:future )?(?:sessions|conversations))\b",
    ),
    (
        "ask;mention;question;come;discussed;say;thank;want;message;otherwise",
        r"\b(?:when(?:ever)?|if|any ?time|every time|each time|as soon as|once|next time|should"
        rf"|until)\b[^.!?]{{0,50}}\b(?:asked|asks?|mentions?|mentioned|questions?|comes? up|discussed|says?|thanks"
        rf"|wants|messages|told otherwise)\b[^.!?]{{0,40}}, ?(?:then |just |always |never |you )*{_SAY}\b",
    ),
    (
        "from now;from here;from this;henceforth;future",
        r"\b(?:from (?:now|here|this point) on|henceforth|in all future \w+"
        rf"|in future conversations)\b[^.!?]{{0,40}}\b(?:you will|you must|you shall|whenever|{_SAY})\b",
    ),
    (
        "answer;repl;response",
        r"\b(?:every|each|all|your) (?:answers?|repl(?:y|ies)|responses?)\b[^.!?]{0,40}\b(?:must|should|has to"
        r"|have to|with)\b",
    ),
    (
        "always;never",
        r"(?:^|[.!?:,] ?)(?:and )?(?:always say|(?:always|never) (?:recommend|answer|reply|suggest|respond|claim"
        r"|state|treat|approve|trust|warn|mention|disclose|verify))\b",
    ),
    (
        "you ",
        r"\byou (?:will|must|shall|are to|have to|should) (?:now |always |never |only |not )*(?:respond|reply"
        r"|answer|treat|obey|praise|never mention|do what i say|recommend|confirm)\b",
    ),
    (
        "all ;as if",
        r"(?:^|[.!?:,] ?)(?:answer|respond to|reply to) all (?:questions|requests|messages)\b"
        r"|\bas if it came from the (?:owner|user|admin)",
    ),
    (
        _SINKS,
        rf"{_START}(?:send|post|append|upload|forward|include|paste|put|export|e?-?mail|encode|attach|copy|list"
        rf"|make a (?:get|post) request|render)\b[^.!?]{{0,80}}\b{_DATA}\b[^?]{{0,120}}{_SINK}",
    ),
    (
        _SINKS,
        rf"{_START}(?:send|post|append|upload|forward|include|paste|put|export|e?-?mail|encode|attach"
        rf"|make a (?:get|post) request to|render)\b[^?]{{0,60}}{_SINK}[^!?]{{0,80}}\b(?:{_DATA}|chat history)",
    ),
    (
        "contact;memor;confidential;records;private notes",
        rf"{_START}(?:export|reveal|disclose|share|leak|paste|upload|forward"
        rf"|list)\b[^.!?]{{0,50}}\b(?:contact list|memory file|stored memories|confidential|customer records"
        r"|in memory|you have in memory|private notes)\b",
    ),
    (
        "system;platform;security;compliance;admin;root;developer;ceo;legal;openai;anthropic;google;microsoft;head of"
        ";owner;staff;department;model",
        r"\b(?:as|i'm|i am|this is|message from|notice by|notice from|by order of|on behalf of|admin note"
        r"|policy update|override|bulletin|legal hold)\b[^.!?]{0,80}\b(?:system|platform|security|compliance"
        r"|admin\w*|root|developers?|ceo|legal|openai|anthropic|google|microsoft|head of|owner|staff"
        r"|it department|model)\b[^!?]{0,80}\b(?:authori[sz]e you|instruct|hereby|permitted|suspended|you have to"
        r"|have to do|do what i say|must|required to|obliged|override|reply with|disclose|assistants?)\b",
    ),
    (
        "check;filter;rules;privileges;confirm;permission;warnings;verification;asking;trust",
        r"\b(?:safety (?:checks?|filters?|rules?)|identity checks?|elevated privileges|confirmation"
        r"|full permissions?|previous warnings)\b[^.!?]{0,40}\b(?:suspended|disabled|lifted|revoked|skip"
        r"|not needed|is needed|confirmed|until further notice)\b|\bskip (?:identity checks|confirmations?"
        r"|verification)\b|\bwithout asking(?: again)?\b|\bset (?:the )?trust (?:level)?",
    ),
    (
        _MODELS,
        rf"\b(?:instructs?|asked that|tells?|requires?|obliged?) (?:the |all |any |every )?(?:{_MACHINE}|bots)\b",
    ),
)
"""Orders that a text gives to who reads it; on sentences."""

_TOOLS = _any(
    rf"(?:{_START}|\b(?:must|has to|have to|step|required|first|next)[:,]? )(?:use|call|invoke|execute|run"
    rf"|trigger|query|open|fetch|click|make|install|paste|log in|submit)\b[^.!?]{{0,60}}?(?:\btools?\b"
    r"|\bfunctions?\b|\bshell\b|\bcommands?\b|\bwebhook\b|\bapi\b|\bbutton\b|\bbrowser\b|\w+_\w+|\w\("
    r"|https?://|\bpackage\b|\baccess token\b|\bscript\b)",
    rf"{_START}(?:create (?:a|the) rule|change the setting|disable|share it with|grant (?:\w+ )?(?:access"
    r"|rights|permissions?)|delete all|transfer|forward all)\b",
    r"\b(?:next|additional|required|further) (?:steps?|actions?)\b[^.!?]{0,30}(?:\bagent\b|\brequired\b"
    r"|: ?[a-z])|\byour next (?:action|step)\b",
    r"\b(?:execute|run)\s*:|\|\s*(?:ba)?sh\b",
)
"""Orders to use tools, in texts that aren't the user's."""

_AGENT = re.compile(
    r"\b(?:agents?|assistants?|ai|llms?|chat ?bots?|tool|webhook|access token|user'?s?|your next (?:action|step)"
    r"|continu\w{1,3} (?:with )?(?:the|your|this) task|saved (?:passwords?|logins?|credentials)|memory\.\w+)\b"
)
"""Words beside which an order to use a tool is meant for an agent; how-to texts order their readers to run commands."""

_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|me|my|mine|we|us|our|myself)\b")

_FOREIGN_CUES = tuple(
    "ignor;vergiss;missachte;überschreib;umgeh;systemprompt;olvida;omite;descarta;anula;desobedece;oubli;néglige"
    ";contourne;prompt système;dimentica;trascura;esqueça;desconsidere;negeer;vergeet;glöm;bortse;zapomnij;pomiń"
    ";игнорируй;забудь;önceki;yukarıdaki;忽略;无视;忘记;忽視;無視;指示;命令;ルール;指令;du bist ;eres ;tu es ;sei ora"
    ";você é agora;je bent nu;der nutzer;der benutzer;el usuario;l'utili;l'utente;o usuário;de gebruiker".split(";")
)
_FOREIGN = _any(
    r"\b(?:ignorier\w*|vergiss|missachte\w*|überschreib\w*|umgeh\w*)\b[^.!?]{0,40}\b(?:vorherig|bisherig"
    r"|vorig|obig|früher|dein|eur|system)\w*[^.!?]{0,30}\b(?:anweisung|regel|befehl|vorgabe|instruktion"
    r"|prompt|richtlinie)\w*|\bvergiss (?:alle )?deine (?:regeln|anweisungen)|\bsystemprompt\b",
    r"\b(?:ignora|olvida|omite|descarta|anula|desobedece)\w*\b[^.!?]{0,40}\b(?:anterior|previ|tus|tu"
    r"|sistema)\w*[^.!?]{0,30}\b(?:instruc|regla|orden|norma|indicaci|mensaje)\w*|\b(?:olvida"
    r"|ignora) (?:todas )?(?:tus|las) (?:reglas|instrucciones|normas)\b",
    r"\b(?:ignore|ignorez|oublie|oubliez|néglige\w*|contourne\w*)\b[^.!?]{0,40}\b(?:instructions|consignes"
    r"|règles|directives|ordres)\b[^.!?]{0,30}(?:précédent|antérieur|ci-dessus|prompt)"
    r"|\boublie\w* tes (?:règles|consignes|instructions)|\bprompt système\b",
    r"\b(?:ignora|dimentica|trascura)\w*\b[^.!?]{0,40}\b(?:istruzioni|regole"
    r"|direttive)\b[^.!?]{0,20}\bprecedent|\b(?:ignora|dimentica) (?:tutte )?(?:le )?(?:tue )?(?:istruzioni"
    r"|regole) precedenti",
    r"\b(?:ignore|ignora|esqueça|desconsidere)\b[^.!?]{0,40}\b(?:instruções|regras|ordens"
    r"|diretrizes)\b[^.!?]{0,20}\b(?:anterior|prévi|do sistema)",
    r"\b(?:negeer|vergeet)\b[^.!?]{0,40}\b(?:eerdere|vorige|voorgaande|je|jouw)\b[^.!?]{0,20}\b(?:instructies"
    r"|regels|opdrachten)\b",
    r"\b(?:ignorera|glöm|bortse från)\b[^.!?]{0,40}\b(?:tidigare|föregående"
    r"|dina)\b[^.!?]{0,20}\b(?:instruktion|regl)\w*",
    r"\b(?:zignoruj|ignoruj|zapomnij|pomiń)\b[^.!?]{0,40}\b(?:poprzedni|wcześniejs"
    r"|swoi?ch)\w*[^.!?]{0,20}\b(?:polece|instrukc|zasad)\w*",
    r"\b(?:игнорируй|проигнорируй|забудь)\w*\b[^.!?]{0,40}\b(?:предыдущ|прежн"
    r"|свои)\w*[^.!?]{0,20}\b(?:инструкц|указани|правил|команд)\w*",
    r"\b(?:önceki|yukarıdaki)\b[^.!?]{0,30}\b(?:talimat|komut|kural)\w*[^.!?]{0,20}\b(?:yok say|unut|dikkate alma)",
    r"(?:忽略|无视|忘记|忽視|無視)[^。！？]{0,12}(?:指令|指示|规则|規則|提示|命令)|(?:指示|命令|ルール|指令)[^。！？]{0,8}(?:無視|忘れ)",
    r"\b(?:du bist (?:jetzt|ab sofort|nun)|eres (?:ahora )?|tu es (?:désormais|maintenant) |sei ora "
    r"|você é agora |je bent nu )[^.!?]{0,20}(?:ki|assistent\w*|asistente|assistant"
    r"|assistente)\b[^.!?]{0,20}\b(?:ohne|sin|sans|senza|sem|zonder)\b",
    r"\b(?:der nutzer|der benutzer|el usuario|l'utilisateur|l'utente|o usuário"
    r"|de gebruiker)\b[^.!?]{0,60}\b(?:zugestimmt|genehmigt|bestätigt|aceptó|aprobó|autorizó|accepté|approuvé"
    r"|accettato|aceitou|goedgekeurd)\b",
)
"""The same as the first of `_STRONG` in other languages."""

# Disguises -------------------------------------------------------------------------------------------

_TAGS = re.compile("(?<!\U0001f3f4)(?<![\U000e0020-\U000e007f])[\U000e0020-\U000e007f]{3,}")
_INVISIBLE_RUN = re.compile("[\u200b\u2060\ufeff]{3,}|(?:\\w[\u200b\u2060\u200c]){4,}")
_OVERRIDE = "\u202e"
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{16,4000}={0,2}(?![\w+/=])", re.ASCII)
_HEX = re.compile(r"(?<![0-9a-fA-F-])(?:[0-9a-fA-F]{2}){12,2000}(?![0-9a-fA-F-])")
_ESCAPES = re.compile(r"(?:%[0-9a-fA-F]{2}){6,}|(?:\\u[0-9a-fA-F]{4}\s?){6,}")
_SPACED_CUE = re.compile(r" \w \w \w\b")
_SPACED = re.compile(r"(?:\b\w ){5,}\w\b|(?:\b\w ){3,}(?:\w )*?\w\b(?=  )")
_LEET = str.maketrans("013457@$", "oieastas")
_MIXED = re.compile(r"\b(?=[a-z]*[0-9@$])(?=[0-9@$]*[a-z])[a-z0-9@$]{3,20}\b")
_READABLE = re.compile(r"\b[a-z]{2,20} [a-z]{2,20} [a-z]{2,20}\b|\b[a-z]{3,20} https?://", re.IGNORECASE)


def looks_like_injection(text: str, origin: Origin = "user") -> bool:
    """Return whether a text gives instructions to a model, as prompt injections do.

    Parameters
    ----------
    text
        The text.
    origin
        Where it comes from. Of an assistant, only the strong rules apply, since it gives instructions to its user; of
        external text, all rules apply to every sentence.
    """
    # in overlapping pieces, so that other threads can run; the overlap is longer than any phrase
    return any(
        _is_suspicious(text[begin : begin + _PIECE], origin)
        for begin in range(0, max(1, len(text)), _PIECE - _LONGEST_PHRASE)
    )


def _is_suspicious(text: str, origin: Origin) -> bool:
    if not text.isascii() and (_TAGS.search(text) or _INVISIBLE_RUN.search(text) or _OVERRIDE in text):
        return True
    lines = clean_lines(text)
    if _has_instructions(lines, origin):
        return True
    return any(_READABLE.search(hidden) for hidden in _encoded(text)) or any(
        _has_strong(other) for other in _readings(text, lines)
    )


def _has_instructions(lines: str, origin: Origin) -> bool:
    if _has_cue(_MARKUP_CUES, lines) and _MARKUP.search(lines):
        return True
    if _has_cue(_HIDDEN_CUES, lines) and any(_HIDDEN_ORDER.search(part[0]) for part in _HIDDEN.finditer(lines)):
        return True
    if _has_strong(lines):
        return True
    if origin == "assistant":
        return False
    sentences = [sentence for sentence in _SENTENCE.split(lines) if len(sentence) >= _SHORTEST]
    orders = _cued(_ORDERS, " ".join(sentences))  # many rules have no cue in any sentence
    return any(_gives_order(sentence, origin, orders) for sentence in sentences)


def clean_lines(text: str) -> str:
    """Return a text in lower case and NFKC without invisible characters, with its line breaks."""
    if not text.isascii():
        text = _LINE_END.sub("\n", text)
        text = "\n".join(clean(line, 80 * _PIECE) for line in text.split("\n") if line).replace("’", "'")
    return _BLANKS.sub(" ", text.lower())


def _has_strong(text: str) -> bool:
    flat = " ".join(text.split())
    if _holds(_STRONG, flat):
        return True
    return _has_cue(_FOREIGN_CUES, flat) and _FOREIGN.search(flat) is not None


def _gives_order(sentence: str, origin: Origin, orders: Rules) -> bool:
    if origin == "user" and _FIRST_PERSON.search(sentence):
        return False
    if _holds(orders, sentence):
        return True
    return origin == "external" and _AGENT.search(sentence) is not None and _TOOLS.search(sentence) is not None


def _encoded(text: str) -> Iterator[str]:
    """Yield what base64 and hexadecimal text in a text says, as far as it is printable ASCII."""
    for found in _BASE64.finditer(text):
        yield _printable(_decoded64(found[0]))
    for found in _HEX.finditer(text):
        yield _printable(bytes.fromhex(found[0]))


def _decoded64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""


def _printable(data: bytes) -> str:
    text = data.decode("ascii", errors="replace")
    return text if text.isprintable() and "\ufffd" not in text else ""


def _readings(text: str, lower: str) -> Iterator[str]:
    """Yield a disguised text unescaped, with spaced letters joined, digits as letters, reversed, and in rot13."""
    if ("%" in text or "\\u" in text) and _ESCAPES.search(text):
        yield unquote(re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)).lower()
    if _SPACED_CUE.search(lower) and _SPACED.search(lower):
        yield " ".join("".join(word.split()) for word in re.split(r" {2,}", text.lower()))
    if len(_MIXED.findall(lower)) >= 3:
        yield lower.translate(_LEET)
    if "revers" in lower or "backward" in lower:
        yield lower[::-1]
    if "rot13" in lower or "caesar" in lower or "shift" in lower:
        yield codecs.encode(lower, "rot13")
