from __future__ import annotations

import pytest

from notewell.embedding.input_text import is_mostly_latin


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("guest wifi password", id="English"),
        pytest.param("¿Dónde está la contraseña del año pasado?", id="Spanish"),
        pytest.param("L’été où Zoë a mangé des œufs", id="French"),
        pytest.param("Straße, Größe, Übermäßig", id="German"),
        pytest.param("Tiếng Việt có nhiều dấu", id="Vietnamese"),
        pytest.param("2026-11-15 10:30 +49 (0) 30 / 42", id="digits and punctuation"),
        pytest.param("😀🎉 — … “”", id="emoji and typographic marks"),
        pytest.param("the α and β of the fund", id="a Greek symbol or two"),
        pytest.param("the restaurant in 東京 was great", id="one foreign word"),
        pytest.param("ｗｉｄｅ", id="full-width letters"),
    ],
)
def test_latin(text):
    assert is_mostly_latin(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("今天的会议记录", id="Chinese"),
        pytest.param("パスワードはどこですか", id="Japanese"),
        pytest.param("비밀번호가 뭐예요", id="Korean"),
        pytest.param("пароль от гостевой сети", id="Russian"),
        pytest.param("كلمة المرور", id="Arabic"),
        pytest.param("מה הסיסמה", id="Hebrew"),
        pytest.param("ποιος είναι ο κωδικός", id="Greek"),
        pytest.param("पासवर्ड क्या है", id="Hindi"),
        pytest.param("wifi 密码是什么", id="mostly Chinese"),
    ],
)
def test_other_scripts(text):
    assert not is_mostly_latin(text)
