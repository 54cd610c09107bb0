/** The result of a conformance run. `--json` prints it. */
export interface Report {
  service: string
  siteKey: string
  origin: string
  /** Package and version that has the rules. */
  checkedBy: string
  startedAt: string
  /** Errors outside of tests, for example that the service cannot be reached. */
  problems: string[]
  tests: {
    rule: string
    section: string
    sentence: string
    state: 'passed' | 'failed' | 'not run'
    /** Why the test failed or was not run. */
    reason?: string
  }[]
}

function summaryOf({ tests }: Report): string[] {
  const count = (state: string) => tests.filter((test) => test.state === state).length
  const reasons = Map.groupBy(
    tests.filter(({ state }) => state === 'not run'),
    ({ reason }) => reason,
  )
  return [
    `${count('passed')} tests passed, ${count('failed')} failed.`,
    `${count('not run')} of ${tests.length} tests need more access than this run had, and were not run.`,
    ...[...reasons].map(([reason, { length }]) => `${length} not run: ${reason}`),
  ]
}

const headOf = ({ service, siteKey, origin, checkedBy, startedAt }: Report) => [
  `Service: ${service}`,
  `Site: ${siteKey}, ${origin}`,
  `Checked by: ${checkedBy}`,
  `Started: ${startedAt}`,
]

export function textOf(report: Report): string {
  const rows = report.tests.map(({ rule, sentence, state, reason }) => {
    const line = `${(state === 'failed' ? 'FAIL' : state).padEnd(8)} ${rule} ${sentence}`
    if (state === 'not run') return `${line}: ${reason}`
    return reason === undefined ? line : `${line}\n${reason.replaceAll(/^/gm, '         ')}`
  })
  const parts = [headOf(report), rows, report.problems.map((problem) => `ERROR    ${problem}`), summaryOf(report)]
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')
}

const escaped = (text: string) => text.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

/** Returns one file without scripts and without references to other files. */
export function htmlOf(report: Report): string {
  const paragraphs = (lines: string[]) => lines.map((line) => `<p>${escaped(line)}</p>`).join('\n')
  const rows = report.tests.map(
    ({ rule, section, sentence, state, reason }) =>
      `<tr class="${state.replace(' ', '-')}"><td>${[state, rule, section, sentence].map(escaped).join('<td>')}<td><pre>${escaped(reason ?? '')}</pre>`,
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Conformance of ${escaped(report.service)}</title>
<style>
body { font: 1rem/1.4 system-ui, sans-serif; margin: 2rem; }
td, th { border-top: 1px solid #ccc; padding: 0.3rem 0.6rem; text-align: start; vertical-align: top; }
pre { font: inherit; margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.failed { background: #fdd; }
.not-run { color: #595959; }
</style>
<h1>Conformance of ${escaped(report.service)}</h1>
${paragraphs([...headOf(report), ...summaryOf(report), ...report.problems])}
<table>
<tr><th>Result<th>Rule<th>Section<th>What the service must do<th>Reason
${rows.join('\n')}
</table>
</html>`
}
