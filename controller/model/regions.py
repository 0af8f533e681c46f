"""Countries, and the six groups of them that vast.ai's search knows. Read by the manifest.

Every ISO 3166-1 country, and Kosovo's XK, is in exactly one group, Antarctica in none. Groups follow the United
Nations' M49 regions, with two choices of our own: Cyprus counts as Europe, and Taiwan, which M49 leaves out, as Asia.
EU is the continent, not the union: it holds GB, CH, UA and RU too.

Four groups are spelled like countries, and the group wins: NA is North America, AF Africa, AS Asia, LC Latin America
and the Caribbean. Namibia, Afghanistan, American Samoa and Saint Lucia are therefore asked for only with their group.
"""

import difflib
from collections.abc import Iterable

_AFRICA = """
AO Angola|BF Burkina Faso|BI Burundi|BJ Benin|BW Botswana|CD Congo (Kinshasa)|CF Central African Republic
CG Congo (Brazzaville)|CI Côte d'Ivoire|CM Cameroon|CV Cabo Verde|DJ Djibouti|DZ Algeria|EG Egypt|EH Western Sahara
ER Eritrea|ET Ethiopia|GA Gabon|GH Ghana|GM Gambia|GN Guinea|GQ Equatorial Guinea|GW Guinea-Bissau
IO British Indian Ocean Territory|KE Kenya|KM Comoros|LR Liberia|LS Lesotho|LY Libya|MA Morocco|MG Madagascar
ML Mali|MR Mauritania|MU Mauritius|MW Malawi|MZ Mozambique|NA Namibia|NE Niger|NG Nigeria|RE Réunion|RW Rwanda
SC Seychelles|SD Sudan|SH Saint Helena|SL Sierra Leone|SN Senegal|SO Somalia|SS South Sudan|ST São Tomé and Príncipe
SZ Eswatini|TD Chad|TF French Southern Territories|TG Togo|TN Tunisia|TZ Tanzania|UG Uganda|YT Mayotte
ZA South Africa|ZM Zambia|ZW Zimbabwe
"""
_ASIA = """
AE United Arab Emirates|AF Afghanistan|AM Armenia|AZ Azerbaijan|BD Bangladesh|BH Bahrain|BN Brunei|BT Bhutan
CN China|GE Georgia|HK Hong Kong|ID Indonesia|IL Israel|IN India|IQ Iraq|IR Iran|JO Jordan|JP Japan|KG Kyrgyzstan
KH Cambodia|KP North Korea|KR South Korea|KW Kuwait|KZ Kazakhstan|LA Laos|LB Lebanon|LK Sri Lanka|MM Myanmar
MN Mongolia|MO Macao|MV Maldives|MY Malaysia|NP Nepal|OM Oman|PH Philippines|PK Pakistan|PS Palestine|QA Qatar
SA Saudi Arabia|SG Singapore|SY Syria|TH Thailand|TJ Tajikistan|TL Timor-Leste|TM Turkmenistan|TR Türkiye|TW Taiwan
UZ Uzbekistan|VN Vietnam|YE Yemen
"""
_EUROPE = """
AD Andorra|AL Albania|AT Austria|AX Åland|BA Bosnia and Herzegovina|BE Belgium|BG Bulgaria|BY Belarus|CH Switzerland
CY Cyprus|CZ Czechia|DE Germany|DK Denmark|EE Estonia|ES Spain|FI Finland|FO Faroe Islands|FR France
GB United Kingdom|GG Guernsey|GI Gibraltar|GR Greece|HR Croatia|HU Hungary|IE Ireland|IM Isle of Man|IS Iceland
IT Italy|JE Jersey|LI Liechtenstein|LT Lithuania|LU Luxembourg|LV Latvia|MC Monaco|MD Moldova|ME Montenegro
MK North Macedonia|MT Malta|NL Netherlands|NO Norway|PL Poland|PT Portugal|RO Romania|RS Serbia|RU Russia|SE Sweden
SI Slovenia|SJ Svalbard and Jan Mayen|SK Slovakia|SM San Marino|UA Ukraine|VA Vatican City|XK Kosovo
"""
_LATIN_AMERICA_AND_CARIBBEAN = """
AG Antigua and Barbuda|AI Anguilla|AR Argentina|AW Aruba|BB Barbados|BL Saint Barthélemy|BO Bolivia
BQ Caribbean Netherlands|BR Brazil|BS Bahamas|BV Bouvet Island|BZ Belize|CL Chile|CO Colombia|CR Costa Rica|CU Cuba
CW Curaçao|DM Dominica|DO Dominican Republic|EC Ecuador|FK Falkland Islands|GD Grenada|GF French Guiana
GP Guadeloupe|GS South Georgia|GT Guatemala|GY Guyana|HN Honduras|HT Haiti|JM Jamaica|KN Saint Kitts and Nevis
KY Cayman Islands|LC Saint Lucia|MF Saint Martin|MQ Martinique|MS Montserrat|MX Mexico|NI Nicaragua|PA Panama
PE Peru|PR Puerto Rico|PY Paraguay|SR Suriname|SV El Salvador|SX Sint Maarten|TC Turks and Caicos Islands
TT Trinidad and Tobago|UY Uruguay|VC Saint Vincent and the Grenadines|VE Venezuela|VG British Virgin Islands
VI United States Virgin Islands
"""
_NORTH_AMERICA = """
BM Bermuda|CA Canada|GL Greenland|PM Saint Pierre and Miquelon|US United States
"""
_OCEANIA = """
AS American Samoa|AU Australia|CC Cocos Islands|CK Cook Islands|CX Christmas Island|FJ Fiji|FM Micronesia|GU Guam
HM Heard and McDonald Islands|KI Kiribati|MH Marshall Islands|MP Northern Mariana Islands|NC New Caledonia
NF Norfolk Island|NR Nauru|NU Niue|NZ New Zealand|PF French Polynesia|PG Papua New Guinea|PN Pitcairn|PW Palau
SB Solomon Islands|TK Tokelau|TO Tonga|TV Tuvalu|UM United States Outlying Islands|VU Vanuatu|WF Wallis and Futuna
WS Samoa
"""


def _read(block: str) -> dict[str, str]:
    return {row[:2]: row[3:] for line in block.split("\n") for row in line.split("|") if row}


_TABLES = {
    "AF": _read(_AFRICA),
    "AS": _read(_ASIA),
    "EU": _read(_EUROPE),
    "LC": _read(_LATIN_AMERICA_AND_CARIBBEAN),
    "NA": _read(_NORTH_AMERICA),
    "OC": _read(_OCEANIA),
}

COUNTRIES: dict[str, str] = {"AQ": "Antarctica"} | {
    code: name for table in _TABLES.values() for code, name in table.items()
}
"""Country code to English name."""

GROUPS: dict[str, frozenset[str]] = {group: frozenset(table) for group, table in _TABLES.items()}
"""Group to the country codes in it."""

_GROUP_NAMES = {
    "Africa": "AF",
    "Asia": "AS",
    "Europe": "EU",
    "Latin America": "LC",
    "Caribbean": "LC",
    "North America": "NA",
    "Oceania": "OC",
}
_COMMON = {
    "uk": "GB",
    "usa": "US",
    "england": "GB",
    "korea": "KR",
    "turkey": "TR",
    "ivory coast": "CI",
    "holland": "NL",
}
_BY_NAME = (
    {name.casefold(): code for code, name in COUNTRIES.items()}
    | {table[code].casefold(): group for group, table in _TABLES.items() for code in GROUPS if code in table}
    | {name.casefold(): group for name, group in _GROUP_NAMES.items()}
    | _COMMON
)
"""What a name stands for: a country's code, its group's where the code is a group's, or a group."""


def code_of(region: str) -> str:
    """The code, in capitals, of a country or a group. Raises ValueError saying what was probably meant."""
    code = region.strip().upper()
    if code in GROUPS or code in COUNTRIES:
        return code
    close = difflib.get_close_matches(region.strip().casefold(), _BY_NAME, n=1, cutoff=0.75)
    meant = f"; did you mean {_BY_NAME[close[0]]}?" if close else " such as NO"
    raise ValueError(f"must be one of the groups {', '.join(GROUPS)} or a two-letter country code{meant}")


def expand(regions: Iterable[str]) -> frozenset[str]:
    """The country codes in these regions; a group wins over a country spelled alike. Raises like `code_of`."""
    codes = [code_of(region) for region in regions]
    return frozenset[str]().union(*(GROUPS.get(code, {code}) for code in codes))
