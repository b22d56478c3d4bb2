"""The report opened and used in a real headless Chromium.

`TASPO_SCREENSHOTS=docs/images` keeps the pictures that are taken at 1280 and 390 pixels.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from run_builder import build_run

from taspo_bench.episode import read_episodes, write_episodes
from taspo_bench.evaluation.publish import write_summary

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

HOSTILE = "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("browser") / "run"
    build_run(path, methods=["grpo", "taspo", "random_weights"], n=40, failed=[("random_weights", "webshop", 1)])
    for file in path.glob("cells/taspo/searchqa/seed-0/episodes/train-*.gz"):
        episodes = list(read_episodes(file))
        episodes[0].turns[0].observation += HOSTILE
        episodes[0].turns[1].action = HOSTILE
        write_episodes(file, episodes)
    write_summary(path)
    return path


@pytest.fixture
def page(chromium: Chrome, run: Path) -> Chrome:
    show(chromium, run, 1280)
    return chromium


def show(browser: Chrome, run: Path, width: int) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get((run / "report.html").as_uri())
    WebDriverWait(browser, 30).until(lambda page: find(page, "#list button"))


def find(browser: Chrome | WebElement, selector: str) -> list[WebElement]:
    return browser.find_elements("css selector", selector)


def choose(browser: Chrome, name: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("id", f"filter-{name}")).select_by_visible_text(value)


def press(browser: Chrome, *keys: str) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def focused(browser: Chrome) -> Any:
    return browser.switch_to.active_element


def test_it_opens_without_an_error_and_asks_the_network_for_nothing(page: Chrome) -> None:
    assert page.get_log("browser") == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert len(find(page, "figure.plot svg")) == 6


def test_a_section_link_scrolls_to_its_section(page: Chrome) -> None:
    find(page, "nav a[href='#episodes']")[0].click()
    assert page.current_url.endswith("#episodes")
    assert find(page, "#episodes h2")[0].is_displayed()


def test_each_filter_narrows_the_list_and_show_all_widens_it_again(page: Chrome) -> None:
    everything = len(find(page, "#list button"))
    choose(page, "outcome", "lost")
    assert {badge.text for badge in find(page, "#list .badge")} == {"lost"}
    choose(page, "method", "taspo")
    choose(page, "env", "searchqa")
    choose(page, "split", "valid_unseen")
    names = {name.text for name in find(page, "#list b")}
    assert names == {"taspo, searchqa, valid_unseen"}
    choose(page, "family", "2-hop")
    left = len(find(page, "#list button"))
    assert 0 < left < everything
    assert page.find_element("id", "count").text == f"{left} of {everything} episodes"
    assert "family 2-hop" in find(page, "#episode .meta")[0].text
    find(page, "#filters button")[0].click()
    assert len(find(page, "#list button")) == everything


def test_filters_that_match_nothing_say_so(page: Chrome) -> None:
    choose(page, "env", "searchqa")
    choose(page, "family", "heat")
    assert find(page, "#list button") == []
    assert page.find_element("id", "episode").text == "No embedded episode matches these filters."


def test_a_click_shows_the_episode_with_its_guidance_and_the_credit_of_each_action(page: Chrome) -> None:
    choose(page, "method", "taspo")
    choose(page, "split", "train")
    button = find(page, "#list button")[1]
    button.click()
    assert button.get_attribute("aria-current") == "true"
    assert len(find(page, "#list [aria-current]")) == 1
    turns = [turn for turn in find(page, "#episode .turns > li") if find(turn, ".action")]
    assert f"{len(turns)} turns" in button.text
    for turn in turns:
        (credit,) = find(turn, ".credit")
        weight = float(credit.text.split()[1])
        (bar,) = find(credit, ".bar i")
        assert bar.get_attribute("class") == ("more" if weight >= 1 else "less")
    assert "The mug must be cleaned" in turns[1].text
    assert "advantage A" in find(page, "#episode .meta")[0].text


def test_text_of_an_episode_is_never_read_as_markup(page: Chrome) -> None:
    choose(page, "method", "taspo")
    choose(page, "env", "searchqa")
    choose(page, "split", "train")
    shown = page.find_element("id", "episode").text
    assert shown.count(HOSTILE) == 2
    assert find(page, "#episode img, #episode script") == []
    assert page.execute_script("return window.owned") is None


def test_the_viewer_works_with_the_keyboard_alone(page: Chrome) -> None:
    from selenium.webdriver import Keys

    page.execute_script("document.getElementById('filter-method').focus()")
    press(page, "t")
    assert focused(page).get_attribute("value") == "=taspo"
    for _ in range(6):
        press(page, Keys.TAB)
    first = focused(page)
    assert first.get_attribute("aria-current") == "true"
    before = find(page, "#episode h3")[0].text
    press(page, Keys.ARROW_DOWN)
    assert focused(page) != first
    assert focused(page).get_attribute("aria-current") == "true"
    assert find(page, "#episode h3")[0].text != before
    press(page, Keys.ARROW_UP)
    assert focused(page) == first


def test_the_first_tab_stop_skips_to_the_results(page: Chrome) -> None:
    from selenium.webdriver import Keys

    press(page, Keys.TAB)
    assert focused(page).text == "Skip to the results"
    press(page, Keys.ENTER)
    assert page.current_url.endswith("#results")


def test_wide_tables_can_be_reached_and_scrolled_with_the_keyboard(page: Chrome) -> None:
    for box in find(page, ".scroll"):
        assert box.get_attribute("tabindex") == "0"
        assert box.get_attribute("aria-label")


def test_every_control_and_plot_has_a_name(page: Chrome) -> None:
    for select in find(page, "select"):
        assert select.accessible_name
    for plot in find(page, "figure.plot svg"):
        assert plot.get_attribute("aria-label")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_its_width(chromium: Chrome, run: Path, tmp_path: Path, width: int) -> None:
    show(chromium, run, width)
    assert chromium.execute_script("return document.documentElement.scrollWidth") == width
    folder = Path(os.environ.get("TASPO_SCREENSHOTS", tmp_path))
    height = min(int(chromium.execute_script("return document.documentElement.scrollHeight")), 16000)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    picture = chromium.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path = folder / f"report-{width}.png"
    path.write_bytes(base64.b64decode(picture["data"]))
    assert path.stat().st_size > 50_000
