"""A seed in, made-up secrets of every kind and the contexts they are found in out; none of them was ever valid."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LETTERS = string.ascii_letters + string.digits
URL_SAFE = LETTERS + "-_"
HEX = "0123456789abcdef"
BASE64 = LETTERS + "+/"
BASE32 = string.ascii_uppercase + "234567"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits


PIECE = 12  # no part of a secret as long as this may stay


@dataclass(frozen=True)
class Planted:
    """A text with a secret in it. `secret` is what must be gone, `kept` what must still be there."""

    kind: str
    context: str
    secret: str
    text: str


def _made(chance: random.Random, form: str) -> str:
    """Return a secret of a form such as `ghp_{b36}`: b letters and digits, w also - and _, h hex, and so on."""
    alphabets = {
        "b": LETTERS,
        "w": URL_SAFE,
        "h": HEX,
        "s": BASE64,
        "A": BASE32,
        "U": UPPER,
        "l": LOWER,
        "d": string.digits,
    }
    out, rest = "", form
    while "{" in rest:
        before, _, rest = rest.partition("{")
        wanted, _, rest = rest.partition("}")
        out += before
        body = "".join(chance.choice(alphabets[wanted[0]]) for _ in range(int(wanted[1:])))
        # Real keys neither begin nor end with a separator where one could be taken for punctuation.
        out += chance.choice(LETTERS) + body[1:-1] + chance.choice(LETTERS) if wanted[0] in "ws" else body
    return out + rest


FORMS = {
    "aws-access-key": ["AKIA{A16}", "ASIA{A16}"],
    "aws-bedrock-key": ["ABSK{s100}=", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t{b80}"],
    "google-api-key": ["AIza{w35}"],
    "google-oauth-token": ["ya29.{w120}"],
    "google-oauth-secret": ["GOCSPX-{w28}"],
    "google-refresh-token": ["1//0{w60}"],
    "alibaba-access-key": ["LTAI{b20}"],
    "tencent-secret-id": ["AKID{b32}"],
    "digitalocean-token": ["dop_v1_{h64}"],
    "heroku-key": ["HRKU-{w60}"],
    "fly-token": ["fm2_{s120}", "fo1_{w43}", "fm1a_{s120}", "fm1r_{s120}="],
    "netlify-token": ["nfp_{b36}"],
    "vercel-token": ["vcp_{b56}"],
    "supabase-token": ["sbp_{h40}", "sb_secret_{w31}"],
    "cloudflare-ca-key": ["v1.0-{h24}-{h146}"],
    "scaleway-key": ["SCW{U17}"],
    "yandex-key": ["AQVN{w36}"],
    "github-token": ["ghp_{b36}", "gho_{b36}", "ghu_{b36}", "ghs_{b36}", "ghr_{b76}"],
    "github-pat": ["github_pat_{b22}_{b59}"],
    "gitlab-token": [
        "GR1348941{w20}", "glcbt-64_{w20}", "glrt-t1_{w27}.01{l7}",
        "glpat-{w20}", "gldt-{w20}", "glrt-{w20}", "glpat-{w27}.01.{l9}"],
    "bitbucket-token": ["ATBB{b32}"],
    "npm-token": ["npm_{b36}"],
    "pypi-token": ["pypi-AgEIcHlwaS5vcmc{w150}"],
    "rubygems-key": ["rubygems_{h48}"],
    "crates-token": ["cio{b32}"],
    "nuget-key": ["oy2{l43}"],
    "clojars-token": ["CLOJARS_{h60}"],
    "docker-token": ["dckr_pat_{w27}"],
    "artifactory-key": ["AKCp{b69}"],
    "circleci-token": ["CCIPAT_{b22}_{h40}"],
    "buildkite-token": ["bkua_{l40}"],
    "sonar-token": ["squ_{h40}"],
    "sourcegraph-token": ["sgp_{h40}", "sgp_{h16}_{h40}"],
    "terraform-token": ["{b14}.atlasv1.{w67}"],
    "pulumi-token": ["pul-{h40}"],
    "anthropic-key": ["sk-ant-api03-{w93}AA", "sk-ant-admin01-{w93}AA"],
    "openrouter-key": ["sk-or-v1-{h64}"],
    "langfuse-key": ["sk-lf-{h8}-{h4}-{h4}-{h4}-{h12}"],
    "openai-key": ["sk-{b48}", "sk-proj-{w74}T3BlbkFJ{w74}", "sk-svcacct-{w58}T3BlbkFJ{w58}"],
    "groq-key": ["gsk_{b52}"],
    "xai-key": ["xai-{b80}"],
    "hugging-face-token": ["hf_{b34}"],
    "replicate-token": ["r8_{b37}"],
    "perplexity-key": ["pplx-{b48}"],
    "voyage-key": ["pa-{w43}"],
    "jina-key": ["jina_{h32}{w28}"],
    "fireworks-key": ["fw_{b24}"],
    "nvidia-key": ["nvapi-{w64}"],
    "cerebras-key": ["csk-{l48}"],
    "tavily-key": ["tvly-{b32}", "tvly-dev-{b32}"],
    "langsmith-key": ["lsv2_pt_{h32}_{h10}"],
    "pinecone-key": ["pcsk_{b6}_{b63}"],
    "stripe-key": ["sk_live_{b24}", "rk_live_{b99}", "sk_test_{b24}"],
    "stripe-webhook-secret": ["whsec_{b32}"],
    "square-token": ["sq0atp-{w22}", "sq0csp-{w43}", "EAAA{w60}"],
    "paypal-token": ["access_token$production${l16}${h32}"],
    "shopify-token": ["shpat_{h32}", "shpss_{h32}"],
    "razorpay-key": ["rzp_live_{b14}"],
    "flutterwave-key": ["FLWSECK-{h32}-X"],
    "easypost-key": ["EZAK{b54}"],
    "plaid-token": ["access-production-{h8}-{h4}-{h4}-{h4}-{h12}"],
    "slack-token": ["xoxb-{d12}-{d13}-{b24}", "xoxp-{d12}-{d12}-{d13}-{h32}", "xoxe.xoxp-1-{b120}"],
    "slack-app-token": ["xapp-1-{U11}-{d13}-{h64}"],
    "slack-cookie": ["xoxd-{b60}%2B{b60}%3D"],
    "slack-webhook": ["https://hooks.slack.com/services/T{U10}/B{U10}/{b24}"],
    "discord-token": ["MTA{b23}.{w6}.{w38}", "OTk{b21}.{w6}.{w27}"],
    "discord-webhook": ["https://discord.com/api/webhooks/{d18}/{w68}"],
    "teams-webhook": ["https://acme.webhook.office.com/webhookb2/{h8}-{h4}-{h4}@{h8}-{h4}/IncomingWebhook/{h32}/{h8}-{h4}"],
    "twilio-key": ["SK{h32}"],
    "sendgrid-key": ["SG.{w22}.{w43}"],
    "mailgun-key": ["key-{h32}"],
    "mailchimp-key": ["{h32}-us12"],
    "brevo-key": ["xkeysib-{h64}-{b16}"],
    "resend-key": ["re_{b8}_{b24}"],
    "telegram-token": ["{d10}:AA{w33}"],
    "facebook-token": ["EAAG{b150}"],
    "twitter-bearer": ["AAAAAAAAAAAAAAAAAAAAA{b80}"],
    "atlassian-token": ["ATATT3xFfGF0{w170}=1A2B3C4D"],
    "notion-token": ["ntn_{d11}{b35}", "secret_{b43}"],
    "linear-key": ["lin_api_{b40}"],
    "figma-token": ["figd_{w40}"],
    "airtable-token": ["pat{b14}.{h64}"],
    "postman-key": ["PMAK-{h24}-{h34}"],
    "contentful-token": ["CFPAT-{w43}"],
    "typeform-token": ["tfp_{w44}"],
    "databricks-token": ["dapi{h32}", "dapi{h32}-2"],
    "doppler-token": ["dp.pt.{b43}", "dp.st.prd.{b43}"],
    "vault-token": ["s.{b12}7Zq{b9}", "hvs.{w92}", "hvb.{w138}"],
    "1password-token": ["ops_eyJ{w250}"],
    "age-key": ["AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"],
    "grafana-token": ["eyJrIjoi{b90}", "glsa_{b32}_{h8}"],
    "grafana-cloud-token": ["glc_{s120}=="],
    "new-relic-key": ["NRAK-{U27}"],
    "sentry-token": ["sntryu_{h64}"],
    "sentry-org-token": ["sntrys_eyJ{b100}"],
    "dynatrace-token": ["dt0c01.{U24}.{U64}"],
    "planetscale-token": ["pscale_tkn_{w43}"],
    "mapbox-token": ["sk.eyJ{w80}.{w22}"],
    "adafruit-key": ["aio_{b28}"],
    "infracost-key": ["ico-{b32}"],
    "prefect-key": ["pnu_{b36}"],
    "readme-key": ["rdme_{l70}"],
    "frameio-token": ["fio-u-{w64}"],
    "shippo-token": ["shippo_live_{h40}"],
    "azure-client-secret": ["{b3}8Q~{w34}"],
    "azure-devops-token": ["{b76}AZDO{b4}"],
    "scalingo-token": ["tk-us-{w48}"],
    "openshift-token": ["sha256~{w43}"],
    "clickhouse-key": ["4b1d{b38}"],
    "neon-key": ["napi_{l64}"],
    "render-key": ["rnd_{b28}"],
    "tailscale-key": ["tskey-auth-{b16}-{b32}"],
    "artifactory-token": ["cmVmd{b59}"],
    "octopus-key": ["API-A1{U24}"],
    "harness-key": ["pat.{w22}.{b24}.{b20}", "sat.{w22}.{b24}.{b20}"],
    "elevenlabs-key": ["sk_{h48}"],
    "runpod-key": ["rpa_{U46}"],
    "apify-token": ["apify_api_{b36}"],
    "firecrawl-key": ["fc-{h32}"],
    "e2b-key": ["e2b_{h40}"],
    "duffel-token": ["duffel_live_{w43}"],
    "fcm-key": ["AAAA{w7}:APA91b{w134}"],
    "okta-token": ["00{w40}"],
    "posthog-key": ["phx_{b48}"],
    "adobe-client-secret": ["p8e-{b32}"],
    "intra42-secret": ["s-s4t2ud-{h64}"],
    "settlemint-token": ["sm_pat_{b16}"],
    "1password-secret-key": ["A3-A5{U4}-{U6}-{U5}-{U5}-{U5}-{U5}"],
    "bitcoin-key": ["xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBe"],
    "authress-key": ["sc_{l20}.{l4}.acc-{l20}.{b60}"],
    "maxmind-key": ["{b6}_{b29}_mmk"],
    "prefixed-secret": ["pk_prod_{b12}4aB{b12}", "live_{b12}7cD{b14}", "token_eu_{b12}7cD{b14}"],
    "jwt": ["eyJ{w30}.eyJ{w120}.{w43}"],
    "jwe": ["eyJ{w40}.{w80}.{w16}.{w90}.{w22}"],
}  # fmt: skip

# Kinds that are told by what stands before them: the whole text is made, and only the value must go.
VALUES: dict[str, list[tuple[str, str]]] = {
    "azure-storage-key": [("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=@;EndpointSuffix=x", "{s86}==")],
    "azure-service-bus-key": [("Endpoint=sb://acme/;SharedAccessKeyName=root;SharedAccessKey=@", "{s43}=")],
    "azure-sas": [("https://acme.blob.core.windows.net/c?sv=2024-01-01&se=2026-01-01&sig=@&sp=r", "{b40}%2B{b4}%3D")],
    "url-password": [
        ("postgres://app:@@db.internal:5432/main", "{b16}"),
        ("postgresql+asyncpg://app:@@db/main", "{b9}!{b5}"),
        ("mysql://root:@@127.0.0.1/x", "{b12}"),
        ("mongodb+srv://svc:@@cluster0.mongodb.net", "{w20}"),
        ("redis://:@@cache:6379/0", "{b24}"),
        ("amqp://guest2:@@rabbit:5672/%2f", "{b10}"),
        ("https://deploy:@@git.acme.dev/repo.git", "{b20}"),
    ],
    "gitlab-session": [("Cookie: _gitlab_session=@; path=/", "{l32}")],
    "facebook-app-token": [("the app token is 138462957103846|@", "{b13}4{b13}")],
    "twilio-auth-token": [("client = Client('AC0123456789abcdef0123456789abcdef', '@')", "{h32}")],
    "aws-secret-key": [
        ("deploy,AKIAJ7QW3ERT5YUI2OPA,@", "{b39}7"),
        ("the pair is AKIAJ7QW3ERT5YUI2OPA and @, keep it", "{b39}7"),
    ],
    "registry-auth": [
        ('{"auths": {"ghcr.io": {"auth": "@"}}}', "{b27}="),
        ("//registry.acme.dev/:_auth=@", "{b31}="),
    ],
    "kubernetes-secret": [("kind: Secret\nmetadata:\n  name: db\ndata:\n  user: YWRtaW4=\n  pass: @\n", "{b30}==")],
    "seed-phrase": [("seed phrase: legal winner thank year wave sausage worth useful legal winner thank @", "yellow")],
    "bearer-token": [
        ("Authorization: Bearer @", "{b40}"),
        ("curl -H 'Authorization: Bearer @' https://api.acme.dev", "{w32}"),
        ('{"headers": {"authorization": "Bearer @"}}', "{h40}"),
        ("proxy-authorization: bearer @", "{s48}"),
    ],
    "authorization": [
        ("Authorization: @", "{b40}"),
        ("Authorization: Basic @", "{s30}=="),
        ('"Authorization": "Token @"', "{h40}"),
    ],
    "password": [
        ("password=@", "{b12}"),
        ("curl -u admin:@ https://api.acme.dev", "{b12}"),
        ("curl -s --user 'me@acme.dev:@' https://api.acme.dev".replace("me@", "me%40"), "{b12}"),
        ("mysql -h db -u root -p@ shop", "{b10}7x"),
        ("sshpass -p @ ssh pi@host".replace("pi@", "pi at "), "{b12}"),
        ("machine api.acme.dev login me password @", "{b12}"),
        ("db.acme.dev:5432:shop:app:@", "{b12}"),
        ('<add key="ClearTextPassword" value="@" />', "{b12}"),
        ("the password of the router is @", "{l6}2-Zx9!"),
        ("router password: @", "{l6}2-Zx9!"),
        ("I changed the wifi password to '@'", "{l6}2-Zx9!"),
        ("`@` is the password", "{l6}2-Zx9!"),
        ("Das Passwort für den Router ist @", "{l6}2-Zx9!"),
        ("Kennwort: @", "{l6}2-Zx9!"),
        ("Le mot de passe du routeur est @", "{l6}2-Zx9!"),
        ("La contraseña del router es @", "{l6}2-Zx9!"),
        ("路由器的密码是@，请保存。", "{l6}2-Zx9!"),
        ("密碼：@", "{l6}2-Zx9!"),
        ("ルーターのパスワードは@です。", "{l6}2-Zx9!"),
        ("공유기 비밀번호는 @입니다", "{l6}2-Zx9!"),
        ("DB_PASSWORD=@", "{b8}#{b3}"),
        ('"password": "@"', "{b6}1!{b4}"),
        ("password: @", "{b10}7"),
        ("PGPASSWORD='@' psql -h db", "{b14}4"),
        ("mysqldump --password=@ shop", "{b12}3"),
        ("login --password @ --user x", "{b12}3"),
        ("The password is @.", "{b11}5"),
        ("Server=db;User Id=sa;Pwd=@;Encrypt=yes", "{b15}2"),
        ("**Password:** @", "{b12}8"),
        ("ssh passphrase: `@`", "{b14}6"),
        ("ALTER USER app WITH PASSWORD '@';", "{b12}9"),
    ],
    "assigned-secret": [
        ("API_KEY=@", "{b32}"),
        ("aws_secret_access_key = @", "{b39}7"),
        ("export CLIENT_SECRET='@'", "{w40}"),
        ('{"access_token": "@", "expires_in": 3600}', "{b64}"),
        ('{\\"refresh_token\\": \\"@\\"}', "{b64}"),
        ("x-api-key: @", "{h32}"),
        ("datadog_api_key: @", "{h32}"),
        ("auth_token => '@'", "{h40}"),
        ("const apiKey = `@`;", "{b36}"),
        ("https://api.acme.dev/v1?api_key=@&limit=3", "{h32}"),
        ("secret: str = \"@\"", "{b40}"),
        ("cli --token @ run", "{b40}"),
        ("The API key is @", "{b32}"),
        ("COHERE_API_KEY=@", "{b40}"),
        ("heroku_api_key = \"@\"", "{h8}-{h4}-{h4}-{h4}-{h12}"),
        ("WireGuard private_key = @", "{s42}8="),
    ],
}  # fmt: skip

CONTEXTS: dict[str, str] = {
    "alone": "@",
    "prose": "I pasted @ into the form yesterday, and it worked.",
    "end of a sentence": "The new one is @.",
    "end of the text": "use this: @",
    "single quotes": "key = '@'",
    "double quotes": 'client = Client("@")',
    "backticks": "set it to `@` first",
    "json": '{"value": "@", "n": 1}',
    "json in json": '{"body": "{\\"value\\": \\"@\\"}"}',
    "after an escaped line end": '{"log": "line one\\n@\\nline three"}',
    "yaml": "config:\n  value: @\n  other: 1\n",
    "toml": 'value = "@"\n',
    "env file": "VALUE=@\nOTHER=1\n",
    "shell": "$ export VALUE=@ && run --now",
    "flag": "tool --value @ --verbose",
    "flag with =": "tool --value=@",
    "address": "https://api.acme.dev/v1/items?value=@&limit=10",
    "percent encoded": "https://acme.dev/cb?next=%2Fx%3Dvalue%3D@%26a",
    "header": "X-Value: @\r\nAccept: */*\r\n",
    "markdown list": "- value: @\n- next\n",
    "markdown table": "| name | value |\n|---|---|\n| a | @ |\n",
    "markdown bold": "the key **@** is old",
    "markdown link": "[console](https://acme.dev/?v=@)",
    "code fence": "```sh\nexport V=@\n```\n",
    "angle brackets": "<@>",
    "parentheses": "(see @)",
    "list": "['@', 'b']",
    "own line": "here it is:\n@\nthanks\n",
    "windows line end": "here:\r\n@\r\nthanks\r\n",
    "tab": "value\t@\tend",
    "quoted mail": "> value: @\n> regards\n",
    "xml": "<value>@</value>",
    "colon": "value:@",
    "terminal colour": "\x1b[31m@\x1b[0m",
    "among Chinese": "密钥是@，请保存。",
    "twice": "@ and again @",
    "percent encoded twice": "https://acme.dev/cb?next=%252Fx%253Dvalue%253D@%2526a",
    "diff": "-value = @\n+value = env('VALUE')\n",
    "comma": "a,@,b",
    "log": "2026-11-16 10:22:33 INFO [main] got @ from env",
}  # fmt: skip


def secrets_of(seed: int) -> Iterator[tuple[str, str]]:
    """Yield a kind and a secret of it, every form once."""
    chance = random.Random(seed)
    for kind, forms in FORMS.items():
        for form in forms:
            yield kind, _made(chance, form)


def planted(seed: int) -> Iterator[Planted]:
    """Yield every kind in every context."""
    for kind, secret in secrets_of(seed):
        for name, context in CONTEXTS.items():
            yield Planted(kind, name, secret, context.replace("@", secret))
    chance = random.Random(seed + 1)
    for kind, cases in VALUES.items():
        for context, form in cases:
            value = _made(chance, form)
            text = context.replace("@@", f"{value}@") if "@@" in context else context.replace("@", value)
            for wrap in ("{}", "say:\n{}\nend\n", *(["`{}`"] if "`" not in text else []), "- {}\r\n- x\r\n"):
                yield Planted(kind, context, value, wrap.replace("{}", text))


def disguised(seed: int) -> Iterator[Planted]:
    """Yield tokens with percent escapes or invisible characters in them."""
    chance = random.Random(seed)
    for kind, secret in secrets_of(seed):
        escaped = "".join(f"%{ord(char):02X}" if char in "-_.+/=~:$|" else char for char in secret)
        at = chance.randrange(2, len(secret) - 2)
        for name, token in (
            ("percent escapes", escaped),
            ("percent escapes, twice", escaped.replace("%", "%25")),
            ("zero-width space", f"{secret[:at]}\u200b{secret[at:]}"),
            ("zero-width joiners", "\u200d".join(secret)),
            ("soft hyphen", f"{secret[:at]}\u00ad{secret[at:]}"),
            *([("escaped by a Markdown editor", secret.replace("_", "\\_"))] if "_" in secret else []),
        ):
            yield Planted(kind, name, secret, f"I pasted {token} into the form")


def wrapped(seed: int) -> Iterator[Planted]:
    """Yield tokens that a terminal, an editor or mail broke in two or more lines."""
    breaks: dict[str, Callable[[str], str]] = {
        "line end": lambda piece: "\n" + piece,
        "indented": lambda piece: "\n    " + piece,
        "shell": lambda piece: "\\\n" + piece,
        "windows": lambda piece: "\r\n" + piece,
        "quoted mail": lambda piece: "\n> " + piece,
    }
    chance = random.Random(seed)
    for kind, secret in secrets_of(seed):
        if (
            kind
            in {
                "slack-webhook",
                "discord-webhook",
                "teams-webhook",
                "mailchimp-key",
                "azure-client-secret",
                "azure-devops-token",
                "maxmind-key",
            }
            or len(secret) < 34
        ):
            continue
        for name, broken in breaks.items():
            # Terminals break anywhere; the pieces are long enough to be worth stealing.
            at = chance.randrange(len(secret) // 2, len(secret) - 8)
            yield Planted(kind, f"wrapped, {name}", secret, f"export V={secret[:at]}{broken(secret[at:])}\nnext line\n")


def private_keys(seed: int) -> Iterator[Planted]:
    """Yield private keys as files, in quotes, in JSON, indented, quoted and cut off."""
    chance = random.Random(seed)
    for label in ("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY",
                  "DSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):  # fmt: skip
        raw = base64.b64encode(chance.randbytes(900)).decode()
        lines = [raw[at : at + 64] for at in range(0, len(raw), 64)]
        block = "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])
        for name, text in {
            "file": f"before\n{block}\nafter\n",
            "json": json.dumps({"private_key": block + "\n", "after": 1}),
            "indented": "key: |\n" + "\n".join("  " + line for line in block.split("\n")) + "\nafter: 1\n",
            "quoted": "\n".join("> " + line for line in block.split("\n")) + "\n> after\n",
            "windows": f"before\r\n{block}\r\nafter\r\n".replace("\r\n", "\n").replace("\n", "\r\n"),
            "cut off": "\n".join(block.split("\n")[:-3]) + "\n\nafter\n",
        }.items():
            yield Planted("private-key", name, lines[2], text)


def left_over(secret: str, text: str) -> list[str]:
    """Return the pieces of a secret that can still be read."""
    random_part = re.split(r"(?<=[-_.:/$])", secret)
    body = max(random_part, key=len)
    body = secret if len(body) < PIECE else secret[secret.index(body) :]
    return [body[at : at + PIECE] for at in range(max(1, len(body) - PIECE + 1)) if body[at : at + PIECE] in text]
