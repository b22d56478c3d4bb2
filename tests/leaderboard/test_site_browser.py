"""The site opened and used in a real headless Chromium, and judged by axe-core.

`TASPO_SCREENSHOTS=docs/images` keeps the pictures that are taken at 1280 and 390 pixels.
"""

from __future__ import annotations

import base64
import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from submission_builder import SayingPolicy, describe, evaluation, submission

from taspo_bench.leaderboard.site import build_site
from taspo_bench.leaderboard.submission import pack

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

HOSTILE = "</script><script>window.owned=1</script><img src=x onerror='window.owned=2'>\"'"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    subs = folder / "subs"
    subs.mkdir()
    for name, skill, steps in (("Alpha", 0.9, 2_000_000), ("beta", 0.5, 40_000), ("Gamma", 0.1, 0)):
        played = [evaluation(folder / f"{name}-{seed}", "alfworld", skill, seed, 24) for seed in (0, 1)]
        submission(subs / f"{name}.tar.gz", played, name, environment_steps=steps, base_model=f"model of {name}")
    expert = evaluation(folder / "expert", "alfworld", 1.0, tasks=24, method="expert")
    submission(subs / "expert.tar.gz", [expert], "Expert", environment_steps=0)
    shouting = evaluation(folder / "hostile", "alfworld", SayingPolicy(HOSTILE), tasks=2, method="shout")
    hostile = describe(HOSTILE, base_model=HOSTILE, method=HOSTILE, contact=HOSTILE, environment_steps=None)
    pack([shouting], hostile, subs / "hostile.tar.gz", responses=True)
    webshop = evaluation(folder / "webshop", "webshop", 0.6, tasks=12)
    submission(subs / "webshop.tar.gz", [webshop], "Shopper")
    return build_site(subs, folder / "site").out


@pytest.fixture
def index(chromium: Chrome, site: Path) -> Chrome:
    return show(chromium, site / "index.html")


@pytest.fixture
def alpha(chromium: Chrome, site: Path) -> Chrome:
    return show(chromium, next(site.glob("submissions/alpha-*.html")))


def show(browser: Chrome, page: Path, width: int = 1280) -> Chrome:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())
    return browser


def find(browser: Chrome | WebElement, selector: str) -> list[WebElement]:
    return browser.find_elements("css selector", selector)


def names(browser: Chrome) -> list[str]:
    """The submissions that the ALFWorld board shows, from the top down."""
    return [row.text for row in find(browser, "#alfworld tbody tr:not([hidden]) th a")]


def sort(browser: Chrome, title: str) -> str | None:
    (button,) = [b for b in find(browser, "#alfworld button.sort") if b.text.startswith(title)]
    button.click()
    return button.find_element("xpath", "..").get_attribute("aria-sort")


def type_in(browser: Chrome, name: str, text: str) -> None:
    field = browser.find_element("id", f"filter-{name}")
    field.clear()
    field.send_keys(text)


def press(browser: Chrome, *keys: str) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def pages(site: Path) -> list[Path]:
    return [site / "index.html", site / "rules.html", *sorted(site.glob("submissions/*.html"))]


def test_every_page_opens_without_an_error_and_asks_the_network_for_nothing(chromium: Chrome, site: Path) -> None:
    for page in pages(site):
        show(chromium, page)
        assert chromium.get_log("browser") == [], page
        assert chromium.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_no_text_of_a_submission_is_read_as_markup(chromium: Chrome, site: Path) -> None:
    for page in pages(site):
        show(chromium, page)
        assert chromium.execute_script("return window.owned") is None
        assert find(chromium, "main img, main script") == []
    show(chromium, next(site.glob("submissions/script-script-window-owned*.html")))
    assert HOSTILE in find(chromium, "h1")[0].text
    assert chromium.find_element("id", "step-action").text == HOSTILE
    assert chromium.find_element("id", "step-response").text == f"I say: {HOSTILE}"


def test_a_heading_sorts_its_column_down_and_up(index: Chrome) -> None:
    assert sort(index, "unseen") == "descending"
    assert names(index)[:4] == ["Expert", "Alpha", "beta", "Gamma"]
    assert sort(index, "unseen") == "ascending"
    assert names(index).index("Gamma") < names(index).index("beta") < names(index).index("Expert")


def test_names_sort_without_regard_to_case(index: Chrome) -> None:
    assert sort(index, "submission") == "ascending"
    assert [name for name in names(index) if name != HOSTILE] == ["Alpha", "beta", "Expert", "Gamma"]


def test_rows_without_a_figure_stay_below_whichever_way_it_is_sorted(index: Chrome) -> None:
    for _ in range(2):
        sort(index, "env steps")
        assert names(index)[-1] == HOSTILE


def test_the_search_narrows_every_board_and_the_plot(index: Chrome) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    everything = len(find(index, "tbody tr"))
    type_in(index, "text", "ALPHA model")
    assert names(index) == ["Alpha"]
    assert index.find_element("id", "count").text == f"1 of {everything} rows"
    assert len(find(index, "#alfworld .point:not(.out)")) == 1
    find(index, "#filters button")[0].click()  # the rows come back in the task after the click's
    WebDriverWait(index, 10).until(lambda page: len(names(page)) == everything - 1)


def test_the_other_filters_narrow_too(index: Chrome) -> None:
    from selenium.webdriver.support.ui import Select

    type_in(index, "budget", "50000")
    assert set(names(index)) == {"beta", "Gamma", "Expert"}
    index.find_element("id", "filter-references").click()
    assert set(names(index)) == {"beta", "Gamma"}
    Select(index.find_element("id", "filter-model")).select_by_visible_text("model of beta")
    assert names(index) == ["beta"]


def test_a_row_opens_its_submission_with_families_and_hashes(index: Chrome) -> None:
    find(index, "#alfworld tbody tr th a")[1].click()
    assert find(index, "h1")[0].text == "Alpha"
    families = {row.text for row in find(index, ".table tbody th")}
    assert families == {"all tasks", "look", "pick", "clean", "heat", "cool", "two"}
    assert "sha256 of the archive" in index.find_element("tag name", "main").text


def test_a_replay_is_stepped_through_to_its_end(alpha: Chrome) -> None:
    name = alpha.find_element("id", "step-name")
    total = int(name.text.rpartition(" ")[2])
    assert "Your task is to" in alpha.find_element("id", "step-observation").text
    for step in range(1, total + 1):
        assert name.text == f"step {step} of {total}"
        followed = alpha.find_element("id", "step-after").text
        alpha.find_element("id", "step-next").click()
        if step < total:
            assert alpha.find_element("id", "step-observation").text == followed
    assert name.text == f"step {total} of {total}"
    alpha.find_element("id", "step-first").click()
    assert name.text == f"step 1 of {total}"


def test_the_list_of_replays_can_be_filtered_by_outcome(alpha: Chrome) -> None:
    from selenium.webdriver.support.ui import Select

    Select(alpha.find_element("id", "episode-filter")).select_by_value("lost")
    assert {badge.text for badge in find(alpha, "#episode-list .badge")} == {"lost"}
    assert find(alpha, "#episode-title .badge")[0].text == "lost"


def test_a_replay_can_be_stepped_through_with_the_keyboard_alone(alpha: Chrome) -> None:
    from selenium.webdriver import Keys

    alpha.execute_script("document.querySelector('#episode-list button').focus()")
    before = alpha.find_element("id", "episode-facts").text
    press(alpha, Keys.ARROW_DOWN)
    assert alpha.find_element("id", "episode-facts").text != before
    alpha.execute_script("document.getElementById('step-slider').focus()")
    press(alpha, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert alpha.find_element("id", "step-name").text.startswith("step 3 of")
    press(alpha, Keys.TAB, Keys.ENTER)
    assert alpha.find_element("id", "step-name").text.startswith("step 4 of")


def test_boards_can_be_sorted_with_the_keyboard_alone(index: Chrome) -> None:
    from selenium.webdriver import Keys

    index.execute_script("document.querySelectorAll('#alfworld button.sort')[1].focus()")
    press(index, Keys.ENTER)
    assert [name for name in names(index) if name != HOSTILE] == ["Alpha", "beta", "Expert", "Gamma"]


def test_the_first_tab_stop_skips_to_the_content(index: Chrome) -> None:
    from selenium.webdriver import Keys

    press(index, Keys.TAB)
    assert index.switch_to.active_element.text == "Skip to the content"
    press(index, Keys.ENTER)
    assert index.switch_to.active_element.get_attribute("id") == "main"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(chromium: Chrome, site: Path, scheme: str) -> None:
    pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    chromium.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    try:
        for page in pages(site):
            show(chromium, page)
            chromium.execute_script(axe)
            result: Any = chromium.execute_async_script("axe.run().then(arguments[0])")
            assert [(found["id"], found["nodes"][0]["html"]) for found in result["violations"]] == [], page
            assert len(result["passes"]) > 20
    finally:
        chromium.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("width", [1280, 390])
def test_the_pages_fit_their_width(chromium: Chrome, site: Path, tmp_path: Path, width: int) -> None:
    folder = Path(os.environ.get("TASPO_SCREENSHOTS", tmp_path))
    for page in (site / "index.html", next(site.glob("submissions/alpha-*.html")), site / "rules.html"):
        show(chromium, page, width)
        assert chromium.execute_script("return document.documentElement.scrollWidth") == width
        height = min(int(chromium.execute_script("return document.documentElement.scrollHeight")), 16000)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        picture = chromium.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path = folder / f"leaderboard-{page.stem.partition('-')[0]}-{width}.png"
        path.write_bytes(base64.b64decode(picture["data"]))
        assert path.stat().st_size > 20_000
