// Checks the deployed dependencies for known vulnerabilities: `npm run verify -- audit`.
// With `--required`, fails if the registry does not respond.
import { spawnSync } from 'node:child_process'

interface Report {
  /** Undefined if the registry did not respond. */
  metadata?: { vulnerabilities: Record<string, number> }
  vulnerabilities?: Record<string, { severity: string; isDirect: boolean; range: string }>
  message?: string
}

/** The outcome is `clean`, `vulnerable` or `unknown`. */
export function classifyReport(text: string): { outcome: string; summary: string } {
  const { metadata, vulnerabilities = {}, message } = readReport(text)
  if (metadata === undefined) {
    return { outcome: 'unknown', summary: `NOT AUDITED: the registry did not respond (${message ?? 'no response'}).` }
  }
  const found = Object.entries(vulnerabilities).map(([name, { severity, range }]) => `  ${name} ${range}: ${severity}`)
  if (found.length === 0) return { outcome: 'clean', summary: 'No known vulnerabilities in production dependencies.' }
  return { outcome: 'vulnerable', summary: ['Known vulnerabilities in production dependencies:', ...found].join('\n') }
}

function readReport(text: string): Report {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

if (import.meta.main) {
  const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8', timeout: 120_000 })
  const { outcome, summary } = classifyReport(stdout ?? '')
  console.log(summary)
  const failed = outcome === 'vulnerable' || (outcome === 'unknown' && process.argv.includes('--required'))
  process.exit(failed ? 1 : 0)
}
