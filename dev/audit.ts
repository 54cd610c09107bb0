// Asks the registry for known weaknesses of what is deployed: `npm run audit`. With `--required` it is a failure when the
// registry does not say.
import { spawnSync } from 'node:child_process'

interface Report {
  /** Undefined: the registry did not say. */
  metadata?: { vulnerabilities: Record<string, number> }
  vulnerabilities?: Record<string, { severity: string; isDirect: boolean; range: string }>
  message?: string
}

export type Verdict = { outcome: 'clean' | 'weak' | 'unknown'; says: string }

/** What a report of `npm audit --json` comes to. */
export function verdictOf(text: string): Verdict {
  const { metadata, vulnerabilities = {}, message } = readReport(text)
  if (metadata === undefined) {
    return { outcome: 'unknown', says: `NOT AUDITED: the registry did not say (${message ?? 'no answer'}).` }
  }
  const found = Object.entries(vulnerabilities).map(([name, { severity, range }]) => `  ${name} ${range}: ${severity}`)
  if (found.length === 0) return { outcome: 'clean', says: 'No known weakness in what is deployed.' }
  return { outcome: 'weak', says: ['Known weaknesses in what is deployed:', ...found].join('\n') }
}

function readReport(text: string): Report {
  try {
    return JSON.parse(text) as Report
  } catch {
    return {}
  }
}

if (import.meta.main) {
  const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8', timeout: 120_000 })
  const { outcome, says } = verdictOf(stdout ?? '')
  console.log(says)
  const failed = outcome === 'weak' || (outcome === 'unknown' && process.argv.includes('--required'))
  process.exit(failed ? 1 : 0)
}
