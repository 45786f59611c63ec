"""`ringlab run --trace` and `ringlab trace`: from a run to numbers and pictures of it."""
import collections
import html.parser
import json
import pathlib
import re
import unittest
import xml.etree.ElementTree as xml

from program import ProgramTest, rendered

TEXT = "It was the best of times, <it> was the worst of times & so on.\n" * 8
SVG = "{http://www.w3.org/2000/svg}"
SCHEDULES = ["broadcast", "allgather", "ring", "bidirectional", "double:2"]
STAGES = re.findall(r"^\d\d_(\w+)", (pathlib.Path(__file__).resolve().parents[3] / "stages" /
                                  "stages.txt").read_text(), re.MULTILINE)
NAMES = {"rank", "step", "owner", "peer", "slot", "gradient", "pass", "bytes"}


class Tags(html.parser.HTMLParser):
    """Counts the elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.counts = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1


class TraceTest(ProgramTest):
    def record(self, *words, ranks=4, subject="optimized"):
        """The events of a run and what its --json says of it."""
        self.path = self.folder / "trace.json"
        report = self.folder / "run.json"
        self.succeeds("run", subject, "--text", self.file("text.txt", TEXT), "--ranks", ranks,
                      "--trace", self.path, "--json", report, *words)
        events = json.loads(self.path.read_text())["traceEvents"]
        return [e for e in events if e["ph"] == "X"], json.loads(report.read_text())

    def summary(self, *words):
        """What `ringlab trace` says of the last recording, as JSON."""
        found = self.folder / "summary.json"
        text = self.succeeds("trace", self.path, "--json", found, *words).out
        return json.loads(found.read_text()), text

    def check_numbers(self, summary, ranks):
        self.assertEqual([rank["rank"] for rank in summary["ranks"]], list(range(ranks)))
        self.assertGreater(summary["seconds"], 0)
        for each in [summary, *summary["ranks"]]:
            if each["overlap"] is not None:
                self.assertGreaterEqual(each["overlap"], 0)
                self.assertLessEqual(each["overlap"], 1)
            self.assertGreaterEqual(each["idle"], 0)
            self.assertLessEqual(each["idle"], 1)
        for rank in summary["ranks"]:
            for name in ("compute_seconds", "in_flight_seconds", "wait_seconds"):
                self.assertGreaterEqual(rank[name], 0)
                self.assertLessEqual(rank[name], summary["seconds"] * (1 + 2**-40), name)
            self.assertLessEqual(rank["block"]["p50_seconds"], rank["block"]["p99_seconds"])
        for link in summary["links"]:
            self.assertNotEqual(link["from"], link["to"])
            self.assertLessEqual(link["receive"]["p50_seconds"], link["receive"]["p99_seconds"])

    def test_every_schedule_leaves_sensible_numbers_behind(self):
        for schedule in SCHEDULES:
            with self.subTest(schedule=schedule):
                events, _ = self.record("--schedule", schedule, "--backward", "--mask", "causal")
                summary, text = self.summary()
                self.check_numbers(summary, ranks=4)
                self.assertEqual(summary["events"], len(events))
                self.assertIsNotNone(summary["overlap"])
                self.assertIn("overlap", text)
                for line in ("run ", "idle ", "straggler ", "slowest link "):
                    self.assertIn(f"\n{line}", text)

    def test_events_are_those_of_the_run(self):
        for schedule in SCHEDULES:
            with self.subTest(schedule=schedule):
                events, report = self.record("--schedule", schedule, "--layout", "zigzag")
                for event in events:
                    self.assertEqual(set(event["args"]), NAMES)
                    self.assertGreaterEqual(event["dur"], 0)
                for rank, stats in enumerate(report["ranks"]):
                    self.check_rank([e for e in events if e["args"]["rank"] == rank], stats)

    def check_rank(self, events, stats):
        """One event per visit in the order of visits; a send and a receive for every K/V message."""
        def of(kind):
            return [e for e in events if e["cat"] == kind]
        visited = [v["owner"] for v in stats["visits"]]
        self.assertEqual([e["args"]["owner"] for e in sorted(of("compute"), key=lambda e: e["ts"])],
                         visited)
        for kind, verb in [("send", "sent"), ("receive", "received")]:
            carried = sum(e["args"]["bytes"] for e in of(kind))
            self.assertGreater(carried, 0)
            self.assertLessEqual(carried, stats[f"{verb}_bytes"])
            self.assertLessEqual(len(of(kind)), stats[f"{verb}_messages"])
        for e in of("send") + of("receive"):
            self.assertNotEqual(e["args"]["peer"], e["args"]["rank"])

    def test_what_one_rank_sends_to_another_the_other_receives(self):
        events, _ = self.record("--schedule", "double:2", "--backward")
        ends = {kind: sorted((e["args"]["rank"], e["args"]["peer"], e["args"]["owner"],
                              e["args"]["gradient"], e["args"]["pass"], e["args"]["bytes"])
                             for e in events if e["cat"] == kind) for kind in ("send", "receive")}
        turned = sorted((to, sender, *rest) for sender, to, *rest in ends["send"])
        self.assertEqual(turned, ends["receive"])
        self.assertTrue(any(e[3] for e in ends["send"]), "no gradients travelled")

    def test_of_a_stage_is_all_that_its_ranks_sent_and_computed(self):
        listed = self.folder / "list.json"
        self.succeeds("list", "--json", listed)
        stages = [subject for subject in json.loads(listed.read_text())["subjects"]
                  if subject["name"] in STAGES]
        self.assertEqual(len(stages), len(STAGES))
        for stage in stages:
            for transport in ("threads", "simulated"):
                with self.subTest(stage=stage["name"], transport=transport):
                    words = ["--backward"] if stage["backward"] else []
                    events, report = self.record("--mask", "causal", "--transport", transport,
                                                 *words, subject=stage["name"])
                    self.check_stage(events, report["ranks"], stage["backward"])
                    self.check_numbers(self.summary()[0], ranks=4)

    def check_stage(self, events, ranks, backward):
        ends = {"send": collections.Counter(), "receive": collections.Counter()}
        for rank, stats in enumerate(ranks):
            mine = [e for e in events if e["args"]["rank"] == rank]
            for kind, verb in [("send", "sent"), ("receive", "received")]:
                carried = [e["args"] for e in mine if e["cat"] == kind]
                self.assertEqual(sum(e["bytes"] for e in carried), stats[f"{verb}_bytes"])
                for e in carried:
                    if e["gradient"]:
                        self.assertEqual(e["owner"], e["peer"] if kind == "send" else e["rank"])
                    way = (e["rank"], e["peer"]) if kind == "send" else (e["peer"], e["rank"])
                    ends[kind][*way, e["owner"], e["pass"]] += e["bytes"]
            blocks = sorted((e for e in mine if e["cat"] == "compute"), key=lambda e: e["ts"])
            owners = [e["args"]["owner"] for e in blocks if e["args"]["pass"] == "forward"]
            visited = [v["owner"] for v in stats["visits"]]
            self.assertEqual(owners, visited if owners != [-1] else [-1])
            back = [e["args"]["owner"] for e in blocks if e["args"]["pass"] == "backward"]
            self.assertEqual(sorted(back), list(range(len(ranks))) if backward else [])
            for block, after in zip(blocks, blocks[1:]):
                self.assertLessEqual(block["ts"] + block["dur"], after["ts"] + 1e-3)
            for block in blocks:
                self.check_arrived(block, mine)
        self.assertEqual(ends["receive"], ends["send"])

    def check_arrived(self, block, events):
        """What a rank computes on has come in full, unless it is its own."""
        args = block["args"]
        if args["owner"] in (-1, args["rank"]):
            return
        self.assertTrue(any(e["ts"] + e["dur"] <= block["ts"] + 1e-3 for e in events
                            if e["cat"] == "receive" and e["args"]["owner"] == args["owner"]
                            and e["args"]["pass"] == args["pass"]), block)

    def test_its_received_bytes_are_those_of_the_events(self):
        events, _ = self.record("--backward")
        summary, _ = self.summary()
        received = [0] * 4
        links = {}
        for e in (e["args"] for e in events if e["cat"] == "receive"):
            received[e["rank"]] += e["bytes"]
            key = (e["peer"], e["rank"])
            links[key] = links.get(key, 0) + e["bytes"]
        self.assertEqual([rank["received_bytes"] for rank in summary["ranks"]], received)
        self.assertEqual({(l["from"], l["to"]): l["bytes"] for l in summary["links"]}, links)

    def test_the_picture_is_one_well_formed_svg_with_a_shape_for_every_rank(self):
        self.record("--backward", "--schedule", "bidirectional")
        svg = self.folder / "lanes.svg"
        self.summary("--svg", svg)
        root = xml.parse(svg).getroot()
        self.assertEqual(root.tag, f"{SVG}svg")
        self.assertGreaterEqual(len(list(root.iter(f"{SVG}rect"))), 4)
        words = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
        for rank in range(4):
            self.assertRegex(words, rf"\b{rank}\b")
        for element in root.iter():
            for name in ("width", "height"):
                if element.tag == f"{SVG}rect" and name in element.attrib:
                    self.assertGreaterEqual(float(element.attrib[name].rstrip("%")), 0)

    def test_the_page_has_tables_and_pictures_and_loads_nothing(self):
        self.record()
        page = self.folder / "trace.html"
        self.summary("--html", page)
        file, text = page.read_text(), rendered(page)
        tags = Tags(file).counts
        self.assertEqual((tags["html"], tags["body"], tags["script"], tags["noscript"]), (1, 1, 2, 1))
        tags = Tags(text).counts
        self.assertGreaterEqual(tags["table"], 1)
        self.assertGreaterEqual(tags["svg"], 1)
        self.assertNotIn("script", tags)
        for start in ("https:", "src=", "url(", "@import"):
            self.assertNotIn(start, file + text)
        for part in text.split("<svg")[1:]:
            xml.fromstring("<svg" + part.split("</svg>")[0] + "</svg>")

    def test_the_name_of_a_trace_is_escaped(self):
        self.record()
        named = self.folder / "<b>&'\".json"
        named.write_bytes(self.path.read_bytes())
        page = self.folder / "trace.html"
        self.succeeds("trace", named, "--html", page)
        for text in (page.read_text(), rendered(page)):
            self.assertNotIn("<b>&'", text)

    def test_one_rank_has_nothing_in_flight(self):
        self.record(ranks=1)
        summary, text = self.summary()
        self.check_numbers(summary, ranks=1)
        self.assertIsNone(summary["overlap"])
        self.assertIsNone(summary["slowest_link"])
        self.assertEqual(summary["links"], [])
        self.assertIn("none in flight", text)

    def test_more_ranks_than_tokens_are_drawn(self):
        events, report = self.record("--tokens", "3", "--backward", ranks=7)
        svg = self.folder / "lanes.svg"
        summary, _ = self.summary("--svg", svg)
        xml.parse(svg)
        self.assertEqual(len(report["ranks"]), 7)
        self.assertLessEqual(len(summary["ranks"]), 7)
        self.check_numbers(summary, ranks=1 + max(e["args"]["rank"] for e in events))

    def test_a_trace_changes_no_result(self):
        outputs = []
        for words in [[], ["--trace", self.folder / "t.json"]]:
            outputs.append(self.folder / f"out{len(outputs)}.safetensors")
            self.succeeds("run", "optimized", "--text", self.file("text.txt", TEXT), "--ranks", "3",
                          "--backward", "--output", outputs[-1], *words)
        self.assertEqual(outputs[0].read_bytes(), outputs[1].read_bytes())

    def test_json_on_standard_output_is_json_and_the_text_goes_elsewhere(self):
        self.record()
        result = self.succeeds("trace", self.path, "--json", "-")
        self.assertEqual(json.loads(result.out)["command"], "trace")
        self.assertIn("overlap", result.err)


if __name__ == "__main__":
    unittest.main()
