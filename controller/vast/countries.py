"""From vast.ai's free text of a place to a country, ISO 3166-1 alpha-2. Used by `wire` alone.

Places come as "Ontario, CA", ", US", "Norway" or "California, United States". The names are those of countries where
machines are for rent, and their neighbours; a name missing here is an unknown country, which no region admits.
"""

import re

CODE = re.compile(r"[A-Z]{2}")
NOT_ISO = {"UK": "GB", "EL": "GR"}  # codes in common use that ISO gave to nobody

NAMES = {
    "argentina": "AR",
    "australia": "AU",
    "austria": "AT",
    "belarus": "BY",
    "belgium": "BE",
    "brazil": "BR",
    "bulgaria": "BG",
    "canada": "CA",
    "chile": "CL",
    "china": "CN",
    "colombia": "CO",
    "croatia": "HR",
    "cyprus": "CY",
    "czech republic": "CZ",
    "czechia": "CZ",
    "denmark": "DK",
    "estonia": "EE",
    "finland": "FI",
    "france": "FR",
    "georgia": "GE",
    "germany": "DE",
    "greece": "GR",
    "hong kong": "HK",
    "hungary": "HU",
    "iceland": "IS",
    "india": "IN",
    "indonesia": "ID",
    "ireland": "IE",
    "israel": "IL",
    "italy": "IT",
    "japan": "JP",
    "kazakhstan": "KZ",
    "latvia": "LV",
    "lithuania": "LT",
    "luxembourg": "LU",
    "malaysia": "MY",
    "mexico": "MX",
    "moldova": "MD",
    "netherlands": "NL",
    "new zealand": "NZ",
    "north macedonia": "MK",
    "norway": "NO",
    "pakistan": "PK",
    "philippines": "PH",
    "poland": "PL",
    "portugal": "PT",
    "romania": "RO",
    "russia": "RU",
    "saudi arabia": "SA",
    "serbia": "RS",
    "singapore": "SG",
    "slovakia": "SK",
    "slovenia": "SI",
    "south africa": "ZA",
    "south korea": "KR",
    "spain": "ES",
    "sweden": "SE",
    "switzerland": "CH",
    "taiwan": "TW",
    "thailand": "TH",
    "the netherlands": "NL",
    "turkey": "TR",
    "uae": "AE",
    "ukraine": "UA",
    "united arab emirates": "AE",
    "united kingdom": "GB",
    "united states": "US",
    "usa": "US",
    "vietnam": "VN",
}


def country_of(place: str | None) -> str | None:
    """The country a place ends with, as its two-letter code; None when it cannot be told.

    Only capitals are a code: "Georgia, US" is in the United States, and "Georgia" alone is the country.
    """
    last = (place or "").rpartition(",")[2].strip()
    if CODE.fullmatch(last):
        return NOT_ISO.get(last, last)
    return NAMES.get(last.casefold())
