# Prints a row for each point of a result of lat-probe. It needs jq 1.6 or newer.
#
#     jq -nrf read.jq result.json

def known: "lat-probe.result/1";

# jq forgets the name of a file that does not end its last line.
def refuse($why): "read.jq: \(input_filename // "the input"): \($why)\n" | halt_error(2);

# First of all: another version may mean something else by the same keys.
def checked:
  if type != "object" or .schema == null then refuse("it has no `schema`, so it is no result of lat-probe")
  elif .schema != known then refuse("its `schema` is \(.schema); this script reads \(known)")
  else . end;

# A result that was taken up again has an instrument for each call; the document's is that of the last one.
def instrument_of($index):
  ([.sweep.sessions // [] | .[] | select(.first_point <= $index)] | last) // . | .instrument;

# Null and a key that an earlier version did not write are both null to jq; keys that are not named are not looked at.
def count: if . == null then "-" else tostring end;

# Three decimals.
def ns:
  if . == null then "-"
  else (. * 1000 | round) as $ps | ($ps / 1000 | floor) as $ns | "\($ns).\("000\($ps - $ns * 1000)"[-3:])" end;

(try [inputs] catch refuse(.))
| if length != 1 then refuse("it is not one JSON document") else .[0] end
| checked
| . as $document
| ([.warnings // [] | .[].code] | unique | if length > 0 then join(",") else "none" end) as $warnings
| ["engine", "bs_bytes", "qd", "n", "p50_ns", "p99_ns", "max_ns", "floor_p50_ns", "partial", "warnings"],
  (.points // [] | to_entries[] | .key as $index | .value | [
    .config.engine,
    (.config.bs_bytes | count),
    (.config.qd | count),
    (.latency_ns.n | count),
    (.latency_ns.percentiles["50"] | ns),
    (.latency_ns.percentiles["99"] | ns),
    (.latency_ns.max | ns),
    ($document | instrument_of($index) | .floor_ns.percentiles["50"] | ns),
    (if .partial then "yes" else "no" end),
    $warnings
  ])
| join("\t")
