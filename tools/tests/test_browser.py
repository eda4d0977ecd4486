"""The site in a real browser: clicks, keys, links, both themes, the verdicts of compare.py.

Needs Debian's chromium and chromium-driver; without them these tests are skipped and say so.
"""

import importlib.resources
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import synthesise
from documents import document, entry

from benchkit import alarms, history, reading, verdicts
from benchkit.index import Index
from benchkit.site import pages

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.common.exceptions import WebDriverException  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (shutil.which("chromium") and shutil.which("chromedriver")),
        reason="chromium and chromium-driver are not installed",
    ),
]
# Root, containers with a small /dev/shm and machines without a GPU are common in CI.
FLAGS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
SERIES = "SGEMM/CPU/Variant0/n:64/real_time"
VIEWS = {
    "overview": "#view=overview&group=variant",
    "series": f"#view=series&m=0&s={SERIES}&beside=references",
    "compare": "#view=compare&m=0&a=3&b=20",
    "heat": "#view=heat&m=0",
    "ladder": "#view=ladder&m=0",
    "roofline": "#view=roofline&m=0",
    "nights": "#view=nights&m=0&night=5",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    synthesise.write_results(folder, 24, 40)
    return folder


def build(results: Path, out: Path, one_file: int = pages.ONE_FILE) -> Path:
    index = Index(out.parent / f"{out.name}.sqlite")
    index.ingest(results)
    past = history.load(index, history.Order())
    found = alarms.find(past, alarms.Rules())
    kept, pages.ONE_FILE = pages.ONE_FILE, one_file
    try:
        pages.build(index, past, found, alarms.Rules(), out)
    finally:
        pages.ONE_FILE = kept
    return out / "index.html"


@pytest.fixture(scope="module")
def site(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(results, tmp_path_factory.mktemp("site") / "one")


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, "--window-size=1400,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    try:
        driver = webdriver.Chrome(options=options, service=service)
    except WebDriverException as error:
        pytest.skip(f"chromium does not start on this machine: {error.msg}")
    yield driver
    driver.quit()


class Page:
    """The site under test: opening views, waiting until they are drawn, finding things by text."""

    def __init__(self, driver, index: Path) -> None:
        self.driver, self.url = driver, index.as_uri()
        self.driver.get("about:blank")
        self.logs("browser"), self.logs("performance")

    def open(self, view: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(self.url + view)
        self.wait()

    def wait(self) -> None:
        """Until the view of the present address is drawn."""
        end = time.monotonic() + 20
        drawn = "return document.getElementById('main').dataset.ready === (location.hash || '#')"
        while not self.driver.execute_script(drawn):
            assert time.monotonic() < end, "the view was not drawn"
            time.sleep(0.02)

    def click(self, xpath: str) -> None:
        self.driver.find_element("xpath", xpath).click()
        self.wait()

    @property
    def text(self) -> str:
        return self.driver.find_element("css selector", "main").text

    @property
    def heading(self) -> str:
        return self.driver.find_element("css selector", "h1").text

    @property
    def hash(self) -> str:
        return self.driver.execute_script("return location.hash")

    def logs(self, kind: str) -> list[dict]:
        return self.driver.get_log(kind)

    def requests(self) -> list[str]:
        messages = [json.loads(line["message"])["message"] for line in self.logs("performance")]
        sent = [m for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [message["params"]["request"]["url"] for message in sent]

    def assert_clean(self) -> None:
        assert self.logs("browser") == []
        assert [u for u in self.requests() if not u.startswith(("file:", "data:", "about:"))] == []


@pytest.fixture
def page(browser, site: Path) -> Page:
    return Page(browser, site)


def test_from_overview_to_series_zoom_compare_and_back_by_link(page: Page) -> None:
    page.open()
    assert page.heading == "Overview"
    page.click(f"//table//a[text()='{SERIES}']")
    assert page.heading == SERIES
    page.click("//button[text()='zoom in']")
    chart = page.driver.find_element("css selector", "svg")
    ActionChains(page.driver).move_to_element_with_offset(
        chart, -200, 0
    ).click_and_hold().move_by_offset(300, 0).release().perform()
    page.wait()
    page.click("//button[text()='logarithmic']")
    zoomed, label = (
        page.hash,
        page.driver.find_element("css selector", "svg").get_attribute("aria-label"),
    )
    assert "from=" in zoomed and "log=1" in zoomed
    page.open(zoomed)  # a reload of the link
    assert page.driver.find_element("css selector", "svg").get_attribute("aria-label") == label
    page.click("//nav//a[text()='Compare nights']")
    assert page.heading == "Compare two nights"
    assert "B against A" in page.driver.find_element("css selector", "main").text
    page.driver.back()
    page.wait()
    assert page.hash == zoomed
    page.assert_clean()


def test_a_link_outlives_a_machine_and_a_night_that_come_before_what_it_shows(
    browser, results: Path, tmp_path: Path
) -> None:
    (tmp_path / "few").mkdir()
    shutil.copytree(results / "SYNTHETIC-1", tmp_path / "few" / "SYNTHETIC-1")
    first = sorted((tmp_path / "few" / "SYNTHETIC-1").iterdir())[0]
    later = tmp_path / first.name
    first.rename(later)
    before = Page(browser, build(tmp_path / "few", tmp_path / "before"))
    before.open("#view=compare&m=0")
    for name, at in (("a", 4), ("b", 9)):
        label = before.driver.find_element("xpath", f"//label[starts-with(., '{name.upper()} ')]")
        label.find_elements("css selector", "option")[at].click()
        before.wait()
    link, caption = before.hash, before.driver.find_element("css selector", "caption").text
    later.rename(first)
    synthesise.write_results(tmp_path / "other", 6, 12, machines=2)
    (tmp_path / "other" / "SYNTHETIC-2").rename(tmp_path / "few" / "A-NEW-ONE")
    after = Page(browser, build(tmp_path / "few", tmp_path / "after"))
    after.open(link)
    assert after.driver.find_element("css selector", "caption").text == caption
    chosen = "return document.querySelector('form select').value"
    assert after.driver.execute_script(chosen) == "SYNTHETIC-1"


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_sticks_out_at_twice_the_size(page: Page, view: str) -> None:
    """A window of 1280 zoomed to 200 % is one of 640; wide tables scroll in their own frames."""
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 640, "height": 500, "deviceScaleFactor": 2, "mobile": False},
    )
    try:
        page.open(VIEWS[view])
        script = "return [document.documentElement.scrollWidth, innerWidth]"
        content, window = page.driver.execute_script(script)
        assert content <= window
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_search_filters_and_lives_in_the_address(page: Page) -> None:
    page.open()
    box = page.driver.find_element("name", "q")
    box.send_keys("gpu n:64", Keys.ENTER)
    page.wait()
    assert "q=gpu+n%3A64" in page.hash
    last = page.driver.find_elements("css selector", ".scroll")[-1]
    names = [link.text for link in last.find_elements("css selector", "tbody a")]
    assert names and all("GPU" in name and "n:64" in name for name in names)
    page.assert_clean()


def test_keyboard_alone_reads_and_zooms_the_chart(page: Page) -> None:
    page.open(VIEWS["series"])
    focused = "return document.activeElement.tagName"
    for _ in range(40):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        if page.driver.execute_script(focused) == "svg":
            break
    assert page.driver.execute_script(focused) == "svg"
    ActionChains(page.driver).send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT).perform()
    said = page.driver.find_element("id", "said").text
    assert "2026-01-22" in said and "s" in said
    cursors = page.driver.execute_script(
        "return [...document.querySelectorAll('svg')].map(chart => "
        "[chart.querySelector('.cursor').getAttribute('x1'), chart.lastChild.textContent])"
    )
    assert len(cursors) == 3 and len({x for x, _ in cursors}) == 1  # one cursor in all charts
    assert all("2026-01-22" in text for _, text in cursors)
    ActionChains(page.driver).send_keys("+").perform()
    page.wait()
    assert "from=" in page.hash
    zoomed = page.hash
    ActionChains(page.driver).send_keys(Keys.PAGE_UP).perform()
    page.wait()
    labels = {s.get_attribute("aria-label").split(" of nights ")[1] for s in svgs(page)}
    assert page.hash != zoomed and len(labels) == 1  # the charts stay together
    assert page.driver.execute_script(focused) == "svg"  # the focus stays where the reader is
    ActionChains(page.driver).send_keys("0").perform()
    page.wait()
    page.assert_clean()


def svgs(page: Page) -> list:
    return page.driver.find_elements("css selector", "svg")


def test_groups_of_series_and_the_noise_floor_of_a_night(page: Page) -> None:
    page.open("#view=overview&group=variant")
    groups = page.driver.find_element("xpath", "//table[caption='Series by variant']")
    rows = [row.text for row in groups.find_elements("css selector", "tbody tr")]
    assert any(row.startswith("Variant1 ") for row in rows)
    page.click("//table[caption='Series by variant']//a[text()='Variant1']")
    names = page.driver.execute_script(
        "return [...document.querySelectorAll('main td a')].map(a => a.textContent)"
    )
    shown = [name for name in names if "n:" in name][-16:]
    assert len(shown) == 16 and all("/Variant1/" in name for name in shown)
    page.open(VIEWS["nights"])
    assert "Noise floor: odd and even launches" in page.text and "inside the margin" in page.text
    page.assert_clean()


def test_the_roofline_by_pointer_keyboard_and_filters(page: Page) -> None:
    page.open(VIEWS["roofline"])
    find = page.driver.find_elements
    assert len(find("css selector", "svg")) == 2
    assert "multiply-adds" in find("css selector", ".roofname")[-1].text + page.text
    points = find("css selector", "svg .pt.cpu")
    ActionChains(page.driver).move_to_element(points[3]).perform()
    assert "CPU/" in find("css selector", ".point")[0].text
    page.driver.execute_script("document.querySelector('svg').focus()")
    ActionChains(page.driver).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP).perform()
    said = page.driver.find_element("id", "said").text
    assert "SGEMM CPU/" in said and "GFLOP/s" in said and "n = " in said
    assert find("css selector", ".point")[0].text == said
    page.open("#view=roofline&m=0&side=GPU&n=256&q=variant1")
    rows = page.driver.execute_script(
        "return [...document.querySelectorAll('main tbody tr')].map(r => r.textContent)"
    )
    assert len(rows) == len(find("css selector", "svg .pt")) >= 1
    assert all("GPU/Variant1" in row for row in rows)
    page.driver.execute_script("document.querySelector('svg').focus()")
    ActionChains(page.driver).send_keys(Keys.ENTER).perform()
    page.wait()
    assert page.heading.startswith("SGEMM/GPU/Variant1")
    page.driver.back()
    page.wait()
    assert "side=GPU" in page.hash
    page.assert_clean()


def test_the_skip_link_comes_first_and_links_work_with_enter(page: Page) -> None:
    page.open()
    ActionChains(page.driver).send_keys(Keys.TAB).perform()
    assert page.driver.switch_to.active_element.get_attribute("id") == "skip"
    ActionChains(page.driver).send_keys(Keys.ENTER).perform()
    assert page.driver.switch_to.active_element.get_attribute("id") == "main"
    link = page.driver.find_element("link text", "Heat map")
    link.send_keys(Keys.ENTER)
    page.wait()
    assert page.heading.startswith("Heat map")


def test_a_name_with_html_in_it_is_text(page: Page) -> None:
    page.open("#view=overview&q=onerror")
    assert synthesise.HOSTILE in page.driver.find_element("css selector", "main").text
    assert page.driver.find_elements("css selector", "main img") == []
    page.assert_clean()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_accessible(page: Page, view: str, theme: str) -> None:
    page.open(f"{VIEWS[view]}&theme={theme}")
    assert violations(page) == []


def test_the_checker_of_accessibility_catches_a_planted_fault(page: Page) -> None:
    page.open()
    page.driver.execute_script(
        "document.getElementById('main').append(document.createElement('input'));"
        "document.documentElement.style.setProperty('--faint', '#eeeeee');"
    )
    assert {found for found, _ in violations(page)} >= {"label", "color-contrast"}


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """What axe-core finds: rule and the first elements."""
    axe = importlib.resources.files("axe_core_python") / "axe.min.js"
    page.driver.execute_script(axe.read_text(encoding="utf-8"))
    run = "axe.run().then(arguments[arguments.length - 1])"
    found = page.driver.execute_async_script(run)["violations"]
    return [(v["id"], [node["html"][:120] for node in v["nodes"][:3]]) for v in found]


def test_split_data_from_disk_and_a_missing_file(browser, results: Path, tmp_path: Path) -> None:
    page = Page(browser, build(results, tmp_path / "split", one_file=0))
    page.open(VIEWS["series"])
    assert page.driver.find_elements("css selector", "svg .line")
    page.assert_clean()
    shutil.rmtree(tmp_path / "split" / "data" / "s")
    page.open(VIEWS["series"])
    assert page.heading == "This view cannot be shown"
    page.open(VIEWS["nights"])
    assert page.heading.startswith("Night ")


def test_an_empty_history_says_what_to_do(browser, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    page = Page(browser, build(tmp_path / "none", tmp_path / "out"))
    page.open()
    assert page.heading == "No nights yet"


def test_verdicts_of_two_nights_are_those_of_compare(browser, tmp_path: Path) -> None:
    """Noise, steps, ties, few launches, broken and absent rows: the same words and numbers."""
    places = write_sides(tmp_path / "results" / "m")
    page = Page(browser, build(tmp_path / "results", tmp_path / "out"))
    page.open()
    script = "comparison(DATA.machines[0], 0, 1).then(r => arguments[0](judge(r, DATA.tests)))"
    shown = {row["name"]: row for row in page.driver.execute_async_script(script)}
    sides = [reading.read([place]) for place in places]
    report = verdicts.judge(*sides, verdicts.Settings(), ("a", "b"))
    assert shown.keys() == {verdict.key for verdict in report.verdicts}
    assert len({verdict.word for verdict in report.verdicts}) >= 7
    for verdict in report.verdicts:
        row = shown[verdict.key]
        assert row["word"] == verdict.word, verdict.key
        if verdict.ratio:
            for mine, theirs in (
                (row["ratio"], verdict.ratio.of_medians),
                (row["estimate"], verdict.ratio.estimate),
                (row["low"], verdict.ratio.low),
                (row["high"], verdict.ratio.high),
                (row["p"], verdict.ratio.p),
                (row.get("adjusted"), verdict.p_adjusted),
            ):
                assert mine == (theirs if theirs is None else pytest.approx(theirs, rel=1e-5)), (
                    verdict.key
                )


def write_sides(folder: Path) -> list[Path]:
    import numpy as np

    rng = np.random.default_rng(4)
    failed = {"error_occurred": True, "error_message": "wrong"}
    places = []
    for side, sha in enumerate(("0000000a", "0000000b")):
        place = folder / f"2026-03-0{side + 1}T020000_{sha}"
        place.mkdir(parents=True)
        for launch in range(10):
            rows = []
            for i in range(40):
                shift = 1 + side * (i % 8 - 3) / 50
                seconds = 1e-3 * shift * float(np.exp(rng.normal(0, 0.004 * (1 + i % 5))))
                seconds = round(seconds, 5) if i % 3 == 0 else round(seconds, 9)  # ties in some
                if i == 39 and launch > 2:
                    continue  # few launches
                rows.append(entry(f"SGEMM/CPU/V{i}/n:64/real_time", seconds))
            rows.append(entry("A/CPU/Broke/n:1", **(failed if side else {})))
            rows.append(entry("A/CPU/Fixed/n:1", **({} if side else failed)))
            rows.append(entry("A/CPU/Never/n:1", **failed))
            rows.append(entry(f"A/CPU/Only{side}/n:1"))
            context = {"git_sha": sha, "cpu_model": "c", "launch_id": f"{side}{launch}"}
            text = json.dumps(document(rows, date=f"2026-03-0{side + 1}T02:00:00+00:00", **context))
            (place / f"CPU-{launch:03d}.json").write_text(text)
        places.append(place)
    return places
