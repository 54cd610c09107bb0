import knownNames from './known-names.json' with { type: 'json' }
import { fileSuffix } from './settings.ts'

const ownPrefixes =
  /^(CORE|GATEWAY|DELIVERY|MONGODB|METRICS|OIDC|RATE_LIMIT|RETENTION|WORKSPACE_SESSION|SECRET_KEY|TRUST_PROX)/
/** Kubernetes adds `CORE_SERVICE_HOST`, `CORE_PORT_8090_TCP` and others for each of its services. */
const ofKubernetes = /_SERVICE_(HOST|PORT)|_PORT_\d+_TCP|_PORT$/
const maxChanges = 2
const minLength = 6

/**
 * Returns the variables that look like settings of the service, but are none, with the name that was probably
 * meant.
 */
export function misspeltNames(env: NodeJS.ProcessEnv): { name: string; meant?: string }[] {
  const known = new Set<string>(knownNames.flatMap((name) => [name, name + fileSuffix]))
  return Object.keys(env)
    .filter((name) => !known.has(name) && name.length >= minLength && !ofKubernetes.test(name))
    .map((name) => {
      const changes = knownNames.map((each) => changesBetween(name.toUpperCase(), each))
      const least = Math.min(...changes)
      return least > maxChanges ? { name } : { name, meant: knownNames[changes.indexOf(least)] }
    })
    .filter(({ name, meant }) => meant !== undefined || ownPrefixes.test(name))
}

export function warnOfMisspeltNames(
  logger: { warn(details: object, message: string): void },
  env: NodeJS.ProcessEnv = process.env,
) {
  for (const { name, meant } of misspeltNames(env))
    logger.warn(
      { setting: name },
      meant
        ? `${name} is not a setting and is ignored; did you mean ${meant}?`
        : `${name} is not a setting and is ignored`,
    )
}

/** Counts insertions, removals and replacements of letters. */
function changesBetween(one: string, other: string) {
  if (Math.abs(one.length - other.length) > maxChanges) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++)
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1))
    row = next
  }
  return row[other.length]!
}
