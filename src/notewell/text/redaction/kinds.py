"""Lists the kinds of secrets that are recognized by their form alone.

The forms come from the providers' own documentation of their key formats. Documented lengths are required, which keeps
ordinary words out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

# The edge of a word, also behind an escape: \\n in JSON, %3D in an address, the end of a terminal's colour.
_BEFORE = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\u00[0-9a-fA-F][0-9a-fA-F])|(?<=\[[0-9]m)"
    r"|(?<=\[[0-9][0-9]m))"
)
# The same edge together with the character that makes it one. What begins with a set of characters is searched fast.
_EDGE = r"[^A-Za-z0-9](?:(?<=\\)(?:[nrt]|u00[0-9a-fA-F][0-9a-fA-F])|(?<=%)[0-9A-Fa-f][0-9A-Fa-f]|(?<=\[)[0-9][0-9]?m)??"
LONGEST_EDGE = 6  # characters: \u001b
_AFTER = r"(?![A-Za-z0-9])"
_W = "[A-Za-z0-9_-]"  # base64 as URLs have it
_B = "[A-Za-z0-9]"
_H = "[0-9a-f]"
_HEX = "[0-9A-Fa-f]"
_UUID = f"{_H}{{8}}-{_H}{{4}}-{_H}{{4}}-{_H}{{4}}-{_H}{{12}}"


@dataclass(frozen=True)  # no slots: patterns are compiled when first needed, all of them would take 0.1 s
class Kind:
    """Secrets of one kind. `beginnings` are tried first: only where one stands is the pattern looked at."""

    name: str
    beginnings: tuple[str, ...]
    form: str  # a regular expression for the whole secret, or for more, with the secret as its group 1
    random: bool = False  # the form alone says little: names of programs have it, too

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.form, re.ASCII)


def _kind(name: str, beginnings: str, form: str, *, random: bool = False) -> Kind:
    # No token is longer; without an end a run of 100 KB would be gone through again from each beginning in it.
    return Kind(name, tuple(beginnings.split()), f"{_BEFORE}{form}{_AFTER}".replace(",}", ",8192}"), random)


# Each begins at the edge of a word and has a run of at least RUN letters, digits, - and _ close behind.
RUN = 16
# All others are at least so long with the signs that addresses and base64 have, also when they are broken in two.
RUN_WITH_SIGNS = 16
PREFIXED = (
    # clouds
    _kind("aws-access-key", "AKIA ASIA ABIA ACCA A3T", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _kind("google-api-key", "AIza", rf"AIza{_W}{{35}}"),
    _kind("google-oauth-token", "ya29.", rf"ya29\.{_W}{{20,}}"),
    _kind("google-oauth-secret", "GOCSPX-", rf"GOCSPX-{_W}{{28}}"),
    _kind("google-refresh-token", "1//0", rf"1//0{_W}{{30,}}"),
    _kind("alibaba-access-key", "LTAI", rf"LTAI{_B}{{17,21}}"),
    _kind("tencent-secret-id", "AKID", rf"AKID{_B}{{32}}"),
    _kind("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", rf"do[opr]_v1_{_HEX}{{64}}"),
    _kind("heroku-key", "HRKU-", rf"HRKU-{_W}{{36,64}}"),
    _kind("netlify-token", "nfp_ nfc_ nfo_ nfu_", rf"nf[pcou]_{_B}{{36}}"),
    _kind("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", rf"vc[piark]_{_W}{{24,}}"),
    _kind("supabase-token", "sbp_ sb_secret_", rf"(?:sbp_{_H}{{40}}|sb_secret_{_W}{{20,}})"),
    _kind("cloudflare-ca-key", "v1.0-", rf"v1\.0-{_H}{{24}}-{_H}{{146}}"),
    _kind("scaleway-key", "SCW", r"SCW[A-Z0-9]{17}"),
    _kind("yandex-key", "AQVN t1.", rf"(?:AQVN{_W}{{35,38}}|t1\.[A-Z0-9a-z_-]+={{0,2}}\.{_W}{{86}}={{0,2}})"),
    _kind("fly-token", "fo1_", rf"fo1_{_W}{{43}}"),
    _kind("scalingo-token", "tk-us-", rf"tk-us-{_W}{{48}}"),
    _kind("openshift-token", "sha256~", rf"sha256~{_W}{{43}}"),
    _kind("clickhouse-key", "4b1d", rf"4b1d{_B}{{38}}", random=True),
    _kind("neon-key", "napi_", rf"napi_{_B}{{48,80}}"),
    _kind("render-key", "rnd_", rf"rnd_{_B}{{28,40}}"),
    _kind("tailscale-key", "tskey-", rf"tskey-(?:auth|api|client|scim|webhook)-{_B}{{8,24}}-{_B}{{16,48}}"),
    # git hosts, packages, builds
    _kind("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_{_B}{{36,255}}"),
    _kind("gitlab-token", "GR1348941", rf"GR1348941{_W}{{20}}"),
    _kind("github-pat", "github_pat_", r"github_pat_[A-Za-z0-9_]{50,255}"),
    _kind(
        "gitlab-token",
        "glpat- gldt- glft- glsoat- glrt- glcbt- glptt- glimt- glagent- gloas- glffct-",
        rf"gl(?:pat|dt|ft|soat|rt|cbt|ptt|imt|agent|oas|ffct)-{_W}{{20,300}}(?:\.{_B}{{2}}\.?{_B}{{7,9}})?",
    ),
    _kind("bitbucket-token", "ATBB", rf"ATBB{_B}{{28,36}}"),
    _kind("npm-token", "npm_", rf"npm_{_B}{{36}}"),
    _kind("pypi-token", "pypi-AgE", rf"pypi-AgE{_W}{{50,}}"),
    _kind("rubygems-key", "rubygems_", rf"rubygems_{_H}{{48}}"),
    _kind("crates-token", "cio", rf"cio{_B}{{32}}"),
    _kind("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    _kind("clojars-token", "CLOJARS_ clojars_", r"(?i:CLOJARS_[a-z0-9]{60})"),
    _kind("docker-token", "dckr_pat_ dckr_oat_", rf"dckr_[po]at_{_W}{{27,32}}"),
    _kind("artifactory-key", "AKCp", rf"AKCp{_B}{{69}}"),
    _kind("artifactory-token", "cmVmd", rf"cmVmd{_B}{{59}}"),
    _kind("octopus-key", "API-", r"API-(?=[0-9]{0,26}[A-Z])(?=[A-Z]{0,26}[0-9])[A-Z0-9]{26}"),
    _kind("harness-key", "pat. sat.", rf"[ps]at\.{_W}{{22}}\.{_B}{{24}}\.{_B}{{20}}"),
    _kind("circleci-token", "CCIPAT_ CCIPRJ_", rf"CCIP(?:AT|RJ)_{_B}{{22}}_{_H}{{40}}"),
    _kind("buildkite-token", "bkua_ bkagt_", rf"bk(?:ua|agt)_{_W}{{40,}}"),
    _kind("sonar-token", "squ_ sqp_ sqa_", rf"sq[upa]_{_H}{{40}}"),
    _kind("sourcegraph-token", "sgp_", rf"sgp_(?:{_HEX}{{16}}_|local_)?{_HEX}{{40}}"),
    _kind("pulumi-token", "pul-", rf"pul-{_H}{{40}}"),
    # language models
    _kind("anthropic-key", "sk-ant-", rf"sk-ant-(?:api|admin|sid|oat|ort)?\d*-?{_W}{{40,}}"),
    _kind("openrouter-key", "sk-or-v1-", rf"sk-or-v1-{_H}{{64}}"),
    _kind("langfuse-key", "sk-lf-", rf"sk-lf-{_H}{{8}}-{_H}{{4}}-{_H}{{4}}-{_H}{{4}}-{_H}{{12}}"),
    _kind("openai-key", "sk-", rf"sk-(?:proj-|svcacct-|admin-|None-)?(?=[a-z_-]{{0,40}}[A-Z0-9]){_W}{{32,}}"),
    _kind("elevenlabs-key", "sk_", rf"sk_{_H}{{48}}"),
    _kind(
        "aws-bedrock-key", "bedrock-api-key-", r"bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t[A-Za-z0-9+/=%-]{0,4000}"
    ),
    _kind("runpod-key", "rpa_", rf"rpa_{_B}{{40,60}}"),
    _kind("apify-token", "apify_api_", rf"apify_api_{_B}{{36,46}}"),
    _kind("firecrawl-key", "fc-", rf"fc-{_H}{{32}}"),
    _kind("e2b-key", "e2b_", rf"e2b_{_H}{{40}}"),
    _kind("groq-key", "gsk_", rf"gsk_{_B}{{48,60}}"),
    _kind("xai-key", "xai-", rf"xai-{_B}{{70,90}}"),
    _kind("hugging-face-token", "hf_ api_org_", rf"(?:hf_|api_org_){_B}{{34,40}}"),
    _kind("replicate-token", "r8_", rf"r8_{_B}{{37}}"),
    _kind("perplexity-key", "pplx-", rf"pplx-{_B}{{40,64}}"),
    _kind("voyage-key", "pa-", rf"pa-(?=[a-z_-]{{0,40}}[A-Z0-9]){_W}{{40,}}"),
    _kind("jina-key", "jina_", rf"jina_{_H}{{32}}{_W}{{20,40}}"),
    _kind("fireworks-key", "fw_", rf"fw_{_B}{{22,40}}"),
    _kind("nvidia-key", "nvapi-", rf"nvapi-{_W}{{60,70}}"),
    _kind("cerebras-key", "csk-", r"csk-[a-z0-9]{48}"),
    _kind("tavily-key", "tvly-", rf"tvly-(?:dev-|prod-)?{_B}{{32}}"),
    _kind("langsmith-key", "lsv2_pt_ lsv2_sk_", rf"lsv2_(?:pt|sk)_{_H}{{32}}_{_H}{{10}}"),
    _kind("pinecone-key", "pcsk_", r"pcsk_[A-Za-z0-9_]{60,80}"),
    # payment
    _kind(
        "stripe-key",
        "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_",
        rf"[sr]k_(?:live|test|prod)_{_B}{{10,247}}",
    ),
    _kind("square-token", "sq0atp- sq0csp- EAAA", rf"(?:sq0(?:atp|csp)-{_W}{{22,60}}|EAAA{_W}{{22,60}})", random=True),
    _kind("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _kind("razorpay-key", "rzp_live_ rzp_test_", rf"rzp_(?:live|test)_{_B}{{14,24}}"),
    _kind("flutterwave-key", "FLWSECK FLWPUBK", r"FLW(?:SECK|PUBK)(?:_TEST|_LIVE)?-(?i:[0-9a-h]{32}-X|[0-9a-h]{12})"),
    _kind("easypost-key", "EZAK EZTK", rf"EZ[AT]K{_B}{{54}}"),
    _kind(
        "plaid-token",
        "access-",
        rf"access-(?:sandbox|development|production)-{_H}{{8}}-{_H}{{4}}-{_H}{{4}}-{_H}{{4}}-{_H}{{12}}",
    ),
    _kind("duffel-token", "duffel_", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}"),
    # chat and mail
    _kind("slack-app-token", "xapp-", r"xapp-\d-[A-Za-z0-9]{1,40}-\d{1,24}-[A-Za-z0-9]{1,80}"),
    _kind("discord-token", "MT Mj Mz ND NT Nj Nz OD OT", rf"[MNO]{_W}{{23,27}}\.{_W}{{6}}\.{_W}{{27,40}}"),
    _kind("twilio-key", "SK", rf"SK{_HEX}{{32}}"),
    _kind("twilio-auth-token", "AC", rf"AC{_H}{{32}}[^0-9A-Za-z\n]{{1,12}}({_H}{{32}})"),
    _kind("fcm-key", "AAAA", rf"AAAA{_W}{{7}}:{_W}{{140,}}"),
    _kind("mailgun-key", "key- pubkey-", rf"(?:pub)?key-{_H}{{32}}"),
    _kind("brevo-key", "xkeysib- xsmtpsib-", rf"x(?:key|smtp)sib-{_H}{{64}}-{_B}{{16}}"),
    _kind("resend-key", "re_", rf"re_{_B}{{8}}_{_B}{{20,30}}"),
    _kind("facebook-token", "EAA", rf"EAA[A-Za-z]{_B}{{60,}}"),
    _kind("twitter-bearer", "AAAAAAAAAAAAAAAAAAAA", r"A{20,24}[A-Za-z0-9%]{60,140}"),
    # tools and services
    _kind("atlassian-token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_=-]{40,280}"),
    _kind("notion-token", "ntn_ secret_", rf"(?:ntn_\d{{11}}{_B}{{35}}|secret_{_B}{{43}})"),
    _kind("linear-key", "lin_api_ lin_oauth_", rf"lin_(?:api|oauth)_{_B}{{32,64}}"),
    _kind("figma-token", "figd_ figu_", rf"fig[du]_{_W}{{36,60}}"),
    _kind("airtable-token", "pat", rf"pat{_B}{{14}}\.{_H}{{64}}"),
    _kind("postman-key", "PMAK-", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    _kind("contentful-token", "CFPAT-", rf"CFPAT-{_W}{{43}}"),
    _kind("typeform-token", "tfp_", rf"tfp_{_W}{{38,64}}"),
    _kind("databricks-token", "dapi", rf"dapi{_H}{{32}}(?:-\d)?"),
    _kind(
        "doppler-token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        rf"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?{_B}{{40,44}}",
    ),
    _kind("vault-token", "hvs. hvb. hvr.", rf"hv[sbr]\.{_W}{{24,300}}"),
    _kind("vault-token", "s. b. r.", rf"[sbr]\.{_B}{{24}}", random=True),
    _kind(
        "1password-secret-key",
        "A3-",
        r"A3-(?=[A-Z-]{0,40}\d)[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    _kind("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    _kind("grafana-token", "glsa_ eyJrIjoi", rf"(?:glsa_{_B}{{32}}_{_HEX}{{8}}|eyJrIjoi{_B}{{60,400}}={{0,3}})"),
    _kind("new-relic-key", "NRAK- NRJS- NRII-", r"NR(?:AK|JS|II)-[A-Za-z0-9_-]{19,32}"),
    _kind("sentry-token", "sntryu_", rf"sntryu_{_H}{{64}}"),
    _kind("dynatrace-token", "dt0c01. dt0s01. dt0s16.", r"dt0[cs]\d\d\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    _kind("okta-token", "00", r"00[A-Za-z0-9_=-]{40}", random=True),
    _kind("posthog-key", "phx_", rf"phx_{_B}{{43,60}}"),
    _kind("adobe-client-secret", "p8e-", rf"p8e-{_B}{{32}}"),
    _kind("intra42-secret", "s-s4t2ud- s-s4t2af-", rf"s-s4t2(?:ud|af)-{_HEX}{{64}}"),
    _kind("settlemint-token", "sm_aat_ sm_pat_ sm_sat_", rf"sm_[aps]at_{_B}{{16}}"),
    _kind("mapbox-token", "sk.eyJ", rf"sk\.eyJ{_W}{{60,}}\.{_W}{{20,}}"),
    _kind("adafruit-key", "aio_", rf"aio_{_B}{{28}}"),
    _kind("infracost-key", "ico-", rf"ico-{_B}{{32}}"),
    _kind("prefect-key", "pnu_ pnb_", rf"pn[ub]_{_B}{{36}}"),
    _kind("readme-key", "rdme_", r"rdme_[a-z0-9]{70}"),
    _kind("shippo-token", "shippo_live_ shippo_test_", rf"shippo_(?:live|test)_{_HEX}{{40}}"),
    _kind("bitcoin-key", "xprv tprv", r"[xt]prv[1-9A-HJ-NP-Za-km-z]{90,112}"),
    # services that nobody has heard of: most tokens begin with what they are for and in which environment they work
    _kind(
        "prefixed-secret",
        "sk_ pk_ rk_ api_ key_ token_ tok_ secret_ live_ prod_ test_ pat_ auth_ access_ priv_",
        r"(?:sk|pk|rk|api|key|token|tok|secret|live|prod|test|pat|auth|access|priv)(?:_[a-z0-9]{2,8}){0,2}_"
        r"(?=[A-Za-z_]{0,40}[0-9])(?=[a-z0-9_]{0,40}[A-Z])(?=[A-Z0-9_]{0,40}[a-z])[A-Za-z0-9]{24,}",
        random=True,
    ),
    # A token without a signature still names its user; a backslash stands where a wrapped log escaped the line end.
    _kind("jwt", "ey", rf"ey[A-Z]{_W}{{10,}}\.ey[A-Z]{_W}{{10,}}\.(?:{_W}{{16,}})?={{0,2}}"),
    _kind("jwt", "ey", r"ey[A-Za-z0-9]{17,}\.ey[A-Za-z0-9/\\_-]{17,}\.(?:[A-Za-z0-9/\\_-]{10,})?={0,2}"),
    _kind("jwt", "ZXlK", r"ZXlK[A-Za-z0-9+/\\_-]{40,}={0,2}"),
    _kind("jwe", "eyJ", rf"eyJ{_W}{{10,}}\.{_W}*\.{_W}{{8,}}\.{_W}{{16,}}\.{_W}{{16,}}"),
    _kind("telegram-token", "AA", rf"(?<=:)AA{_W}{{33}}"),
)


# These may have +, /, = or $ so early that no such run follows; each beginning is looked for in runs with signs.
BASE64 = (
    _kind("terraform-token", "atlasv1.", r"atlasv1\.[A-Za-z0-9_=-]{60,70}"),
    _kind("frameio-token", "fio-u-", r"fio-u-[A-Za-z0-9_=-]{64}"),
    _kind("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9=_.-]{66}"),
    _kind("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}"),
    _kind(
        "slack-token",
        "xox",
        r"xox(?:[abceoprs][.-][A-Za-z0-9.-]{18,400}|[ar]-(?:\d-)?[0-9A-Za-z]{8,48}|[os](?:-\d{1,20}){3}-[a-fA-F\d]{4,64})",
    ),
    _kind("aws-bedrock-key", "ABSK", r"ABSK[A-Za-z0-9+/]{60,}={0,2}"),
    _kind("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/]{32,64}={0,2}"),
    _kind("fly-token", "fm2_", r"fm2_[A-Za-z0-9+/=_,-]{40,}"),
    _kind("fly-token", "fm1a_", r"fm1a_[A-Za-z0-9+/]{40,}={0,3}"),
    _kind("fly-token", "fm1r_", r"fm1r_[A-Za-z0-9+/]{40,}={0,3}"),
    _kind("1password-token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/_-]{100,}={0,3}"),
    _kind("slack-cookie", "xoxd-", r"xoxd-[A-Za-z0-9%/+=-]{40,400}"),
    _kind("grafana-cloud-token", "glc_", r"glc_[A-Za-z0-9+/]{32,}={0,2}"),
    _kind("paypal-token", "access_token$", rf"access_token\$(?:production|sandbox)\$[a-z0-9]{{16}}\${_H}{{32}}"),
    _kind("sentry-org-token", "sntrys_", r"sntrys_eyJ[A-Za-z0-9+/=_-]{40,}"),
    *(
        _kind(
            "authress-key",
            beginning,
            rf"{beginning}{_B}{{5,30}}\.{_B}{{4,6}}\.acc[_-][A-Za-z0-9-]{{10,32}}\.[A-Za-z0-9+/_=-]{{30,120}}",
        )
        for beginning in ("sc_", "ext_", "scauth_", "authress_")
    ),
)


# These do not begin so: the literal in each is looked for, and the form is tried `back` characters before it.
@dataclass(frozen=True)
class Marked(Kind):
    """Secrets of one kind that have a literal inside or before them."""

    back: int = 0


MARKED = tuple(
    Marked(name, (literal,), form.replace(",}", ",8192}"), back=back)
    for name, literal, back, form in (
        ("azure-client-secret", "Q~", 4, rf"{_BEFORE}[A-Za-z0-9_~.]{{3}}\dQ~[A-Za-z0-9_~.-]{{31,34}}{_AFTER}"),
        ("azure-storage-key", "AccountKey=", 0, r"AccountKey=([A-Za-z0-9+/]{40,}={0,2})"),
        ("azure-service-bus-key", "SharedAccessKey=", 0, r"SharedAccessKey=([A-Za-z0-9+/]{40,}={0,2})"),
        ("azure-sas", "sig=", 0, r"(?<=[?&;\"'])sig=((?:[A-Za-z0-9+/_-]|%[0-9A-Fa-f]{2}){40,}={0,2})"),
        ("azure-devops-token", "AZDO", 76, rf"{_BEFORE}{_B}{{76}}AZDO{_B}{{4}}{_AFTER}"),
        ("mailchimp-key", "-us", 32, rf"{_BEFORE}{_H}{{32}}-us\d{{1,2}}{_AFTER}"),
        ("maxmind-key", "_mmk", 36, rf"{_BEFORE}{_B}{{6}}_{_B}{{29}}_mmk{_AFTER}"),
        ("gitlab-session", "_gitlab_session=", 0, r"_gitlab_session=([0-9A-Za-z]{32})"),
        ("facebook-app-token", "|", 15, rf"\d{{15}}\|(?=[A-Za-z_-]{{0,40}}\d){_W}{{27,40}}{_AFTER}"),
        ("facebook-app-token", "%", 15, rf"\d{{15}}%(?:7[cC])?(?=[A-Za-z_-]{{0,40}}\d){_W}{{27,40}}{_AFTER}"),
        (
            "slack-webhook",
            "hooks.slack.com/",
            0,
            r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{30,})",
        ),
        ("discord-webhook", "/api/webhooks/", 0, rf"/api/webhooks/\d{{5,24}}/({_W}{{40,}})"),
        ("teams-webhook", ".webhook.office.com/", 0, r"\.webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{60,})"),
    )
)


def _any_of(beginnings: Iterator[str]) -> str:
    """Return one form for all beginnings, grouped by their first character: a fifth of the time of a flat list."""
    groups: dict[str, set[str]] = {}
    for beginning in beginnings:
        groups.setdefault(beginning[0], set()).add(re.escape(beginning[1:]))
    # The longest first, so that sk-ant- is not taken for sk-.
    branches = (
        f"{re.escape(first)}(?:{'|'.join(sorted(rest, key=len, reverse=True))})" for first, rest in groups.items()
    )
    return f"(?:{'|'.join(branches)})"


_BEGINNING = _any_of(beginning for kind in PREFIXED for beginning in kind.beginnings)
BEGINNINGS = re.compile(f"{_BEFORE}{_BEGINNING}")
MAY_BEGIN = re.compile(f"{_EDGE}{_BEGINNING}")  # says so in half the time, but not of the first word of a text
LONGEST_BEGINNING = 24  # characters before a run that may belong to its secret: `dp.st.`, a name and a dot
BY_BEGINNING: Mapping[str, tuple[Kind, ...]] = {
    beginning: tuple(kind for kind in PREFIXED if any(beginning.startswith(each) for each in kind.beginnings))
    for kind in PREFIXED
    for beginning in kind.beginnings
}
