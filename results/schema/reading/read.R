# Prints a row for each point of a result of lat-probe. It needs the package jsonlite (Debian: r-cran-jsonlite).
#
#     Rscript read.R result.json

KNOWN <- "lat-probe.result/1"

refuse <- function(...) {
  cat("read.R: ", ..., "\n", sep = "", file = stderr())
  quit(status = 2)
}

# The value at a place. Null and a key that an earlier version did not write are both NULL; others are not looked at.
# `[[` takes whole names only; `$` would take `n` for the beginning of another one.
get_at <- function(value, ...) {
  for (key in c(...)) value <- if (is.list(value)) value[[key]] else NULL
  value
}

load_result <- function(path) {
  # Lists stay lists: vectors and data frames have no place for NULL.
  unreadable <- function(condition) refuse(path, ": ", conditionMessage(condition))
  document <- tryCatch(jsonlite::read_json(path, simplifyVector = FALSE), error = unreadable, warning = unreadable)
  # First of all: another version may mean something else by the same keys.
  schema <- get_at(document, "schema")
  if (is.null(schema)) refuse(path, ": it has no `schema`, so it is no result of lat-probe")
  if (!identical(schema, KNOWN)) refuse(path, ": its `schema` is ", paste(unlist(schema), collapse = " "), "; this script reads ", KNOWN)
  document
}

# A result that was taken up again has an instrument for each call; the document's is that of the last one. Points count
# from 0.
instrument_of <- function(document, index) {
  began <- Filter(function(session) session[["first_point"]] <= index, get_at(document, "sweep", "sessions"))
  get_at(if (length(began) > 0) began[[length(began)]] else document, "instrument")
}

ns <- function(value) if (is.null(value)) "-" else sprintf("%.3f", value)
count <- function(value) if (is.null(value)) "-" else sprintf("%.0f", value)

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 1) refuse("it takes one file: Rscript read.R result.json")
document <- load_result(arguments[1])
codes <- vapply(get_at(document, "warnings"), function(warning) warning[["code"]], "")
# The radix method sorts by bytes, whatever the language of the machine.
codes <- sort(unique(codes), method = "radix")
warnings <- if (length(codes) > 0) paste(codes, collapse = ",") else "none"

row <- function(index) {
  point <- document[["points"]][[index]]
  latency <- get_at(point, "latency_ns")
  c(
    get_at(point, "config", "engine"),
    count(get_at(point, "config", "bs_bytes")),
    count(get_at(point, "config", "qd")),
    count(get_at(latency, "n")),
    ns(get_at(latency, "percentiles", "50")),
    ns(get_at(latency, "percentiles", "99")),
    ns(get_at(latency, "max")),
    ns(get_at(instrument_of(document, index - 1), "floor_ns", "percentiles", "50")),
    if (isTRUE(get_at(point, "partial"))) "yes" else "no",
    warnings
  )
}

names <- c("engine", "bs_bytes", "qd", "n", "p50_ns", "p99_ns", "max_ns", "floor_p50_ns", "partial", "warnings")
for (cells in c(list(names), lapply(seq_along(get_at(document, "points")), row))) {
  cat(paste(cells, collapse = "\t"), "\n", sep = "")
}
