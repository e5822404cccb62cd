-- Prints one line of JSON when wrk is done, for every script that sends something.

function done(summary, latency, requests)
  local wrong = summary.errors
  io.write(string.format(
    '\nFIGURES {"requests": %d, "seconds": %.6f, "bytes": %d, "p50": %.1f, "p99": %.1f, "refused": %d, "broken": %d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes, latency:percentile(50), latency:percentile(99),
    wrong.status, wrong.connect + wrong.read + wrong.write + wrong.timeout))
end
