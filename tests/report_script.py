"""The page of `lat-probe report` in a real browser. `scripts/setup --tests` installs it.

    target/venv-browser/bin/python -B tests/report_script.py

The binary is target/debug/lat-probe. Pictures of every part are left in target/report, to be looked at."""

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ROOT = Path(__file__).resolve().parents[1]
LAT_PROBE = ROOT / "target/debug/lat-probe"
PICTURES = ROOT / "target/report"
LARGEST_BYTES = 5 << 20


def call(folder, *arguments):
    return subprocess.run([LAT_PROBE, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def browser():
    options = webdriver.ChromeOptions()
    # A test machine may be root in a container, where the sandbox of Chromium cannot be made.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1300,1500"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_page_load_timeout(60)
    return driver


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="lat-probe-report."))
        PICTURES.mkdir(parents=True, exist_ok=True)
        cls.well("fill", "--allow-write", "file", "--size", "4M")
        read = ("--engine", "libaio", "--target", "file", "--buffered", "--rw", "randread")
        cls.well(*read, "--count", "3000", "--qd", "1,4", "--output", "sweep.json", "--samples", "sweep.npy")
        cls.well("--engine", "null", "--count", "1000000", "--output", "null.json", "--samples", "null.npy",
                 "--label", "</script><script>throw 1</script>")
        cls.well("--engine", "null", "--count", "1000", "--output", "bare.json")
        series = call(cls.folder, "ab", "--a", "true", "--b", "true", "--rounds", "12", "--engine", "null", "--count", "2000",
                      "--output", "series.json")
        assert (cls.folder / "series.json").exists(), series.stderr
        cls.files = ("sweep.json", "null.json", "bare.json", "series.json")
        cls.well("report", *cls.files, "-o", "report.html")
        cls.driver = browser()

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        shutil.rmtree(cls.folder)

    @classmethod
    def well(cls, *arguments):
        done = call(cls.folder, *arguments)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"

    def setUp(self):
        self.driver.get((self.folder / "report.html").as_uri())

    def tearDown(self):
        self.assertEqual(self.driver.get_log("browser"), [], "the console is not silent")

    def find(self, selector, within=None):
        return (within or self.driver).find_element(By.CSS_SELECTOR, selector)

    def show(self, tab):
        self.find(f"#tab-{tab}").click()
        self.assertTrue(self.find(f"#{tab}").is_displayed())

    def shown(self, figure):
        return self.find("output", figure).text

    def test_figures_are_those_of_the_results(self):
        rows = self.driver.find_elements(By.CSS_SELECTOR, "#summary tr[data-point]")
        points = [point for name in self.files[:3] for point in json.loads((self.folder / name).read_text())["points"]]
        self.assertEqual(len(rows), len(points))
        for row, point in zip(rows, points):
            cells = [cell.text for cell in row.find_elements(By.CSS_SELECTOR, "td.number")]
            self.assertEqual(cells[0], f"{point['latency_ns']['n']:,}")
            exact = [float(cell.get_attribute("title").split()[0]) for cell in row.find_elements(By.CSS_SELECTOR, "td span")]
            percentiles = point["latency_ns"]["percentiles"]
            self.assertEqual(exact[0], point["latency_ns"]["min"])
            self.assertEqual(exact[1], percentiles["50"])
            self.assertIn(point["latency_ns"]["max"], exact)

    def test_every_part_is_drawn_in_light_and_dark(self):
        for theme in ("light", "dark"):
            for tab, charts in (("summary", 2), ("timeline", 1), ("instrument", 0), ("comparison", 1)):
                self.show(tab)
                self.driver.save_screenshot(str(PICTURES / f"{tab}-{theme}.png"))
                drawn = self.driver.find_elements(By.CSS_SELECTOR, f"#{tab} .plot canvas")
                self.assertEqual(len(drawn), charts, tab)
                for canvas in drawn:
                    # Something of several colours: not an empty frame.
                    colors = self.driver.execute_script(
                        "const c = arguments[0], d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                        "const s = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3]) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);"
                        "return s.size", canvas)
                    self.assertGreater(colors, 3, tab)
            back = self.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            self.assertEqual(back, {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 27)"}[theme])
            self.find("#theme").click()

    def test_a_timeline_zooms_by_mouse_and_by_keys(self):
        self.show("timeline")
        figure = self.find("[data-chart=timeline]")
        whole = self.shown(figure)
        over = self.find(".u-over", figure)
        drag = webdriver.ActionChains(self.driver).move_to_element_with_offset(over, -200, 0).click_and_hold()
        drag.move_by_offset(150, 0).release().perform()
        dragged = self.shown(figure)
        self.assertNotEqual(dragged, whole)
        plot = self.find(".plot", figure)
        seen = {whole, dragged}
        for key in ("+", Keys.ARROW_RIGHT, "-", "+", "+"):
            plot.send_keys(key)
            seen.add(self.shown(figure))
        self.assertGreaterEqual(len(seen), 5, seen)
        plot.send_keys("0")
        self.assertEqual(self.shown(figure), whole)
        self.find("[data-zoom=in]", figure).click()
        self.assertNotEqual(self.shown(figure), whole)

    def test_a_zoomed_histogram_has_the_buckets_of_the_result(self):
        for box in self.driver.find_elements(By.CSS_SELECTOR, "[name=point]")[:-1]:
            box.click()
        point = json.loads((self.folder / "bare.json").read_text())["points"][0]
        lower_ns, _, count = point["histogram"]["buckets"][0]
        figure = self.find("[data-chart=histogram]")
        whole = self.shown(figure)
        self.assertIn(f"Shown: {lower_ns} ns to ", whole)
        self.find("[data-zoom=body]", figure).click()
        self.assertIn(f"Shown: {lower_ns} ns to ", self.shown(figure))
        over = self.find(".u-over", figure)
        for log in (True, False):
            webdriver.ActionChains(self.driver).move_to_element_with_offset(over, 1 - over.size["width"] // 2, 0).perform()
            at, commands = [cell.text for cell in figure.find_elements(By.CSS_SELECTOR, ".u-value")]
            self.assertEqual((at, commands), (f"{lower_ns} ns", f"{count:,}"), log)
            self.find("[data-switch=log]", figure).click()
            self.assertEqual(self.shown(figure), whole)
            self.find("[data-zoom=body]", figure).click()
            over = self.find(".u-over", figure)

    def test_tabs_go_by_keys(self):
        self.show("summary")
        self.find("#tab-summary").send_keys(Keys.ARROW_RIGHT)
        self.assertTrue(self.find("#timeline").is_displayed())
        self.find("#tab-timeline").send_keys(Keys.END)
        self.assertTrue(self.find("#comparison").is_displayed())
        self.assertFalse(self.find("#summary").is_displayed())

    def test_points_are_chosen(self):
        legend = lambda: len(self.driver.find_elements(By.CSS_SELECTOR, "[data-chart=curve] .u-series"))
        before = legend()
        self.find("[name=point]").click()
        self.assertEqual(legend(), before - 1)
        self.show("timeline")
        for index, words in ((0, "every one of 3000 samples"), (2, "all samples, in"), (3, "no samples were stored")):
            self.find(f"#over-time option[value='{index}']").click()
            self.assertIn(words, self.find(f".of-point[data-point='{index}']").text)

    def test_a_page_of_ten_million_samples_is_small(self):
        self.well("--engine", "null", "--count", "10000000", "--output", "large.json", "--samples", "large.npy")
        self.well("report", "large.json", "-o", "large.html")
        page = self.folder / "large.html"
        self.assertLess(page.stat().st_size, LARGEST_BYTES)
        self.driver.get(page.as_uri())
        self.show("timeline")
        self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#timeline canvas")), 1)
        (self.folder / "large.npy").unlink()

    def test_bad_files_are_named_and_an_old_page_stays(self):
        old = self.folder / "old.html"
        good = (self.folder / "bare.json").read_text()
        bad = {
            "empty.json": ("", "the file is empty"),
            "cut.json": (good[:500], "not a JSON document"),
            "foreign.json": ('{"a": 1}', "no `schema`"),
            "newer.json": (good.replace("lat-probe.result/1", "lat-probe.result/2"), "lat-probe.result/2; this version reads"),
            "deep.json": ("[" * 100_000, "not a JSON document"),
            "missing.json": (None, "No such file"),
        }
        for name, (text, words) in bad.items():
            old.write_text("old")
            if text is not None:
                (self.folder / name).write_text(text)
            done = call(self.folder, "report", name, "-o", "old.html")
            self.assertEqual(done.returncode, 2, name)
            self.assertIn(name, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertNotIn("panicked", done.stderr)
            self.assertEqual(old.read_text(), "old")
        samples = self.folder / "sweep-1.npy"
        whole = samples.read_bytes()
        samples.write_bytes(whole[:-10])
        done = call(self.folder, "report", "sweep.json", "-o", "old.html")
        samples.write_bytes(whole)
        self.assertEqual((done.returncode, old.read_text()), (2, "old"), done.stderr)
        self.assertIn("sweep-1.npy: cut off", done.stderr)
        done = call(self.folder, "report", "bare.json", "-o", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left", done.stderr)
        done = call(self.folder, "report", "bare.json", "-o", "bare.json")
        self.assertEqual((done.returncode, (self.folder / "bare.json").read_text()), (2, good))


if __name__ == "__main__":
    unittest.main(verbosity=2)
