import type { FieldIssue } from '../contract/errors.ts'
import { operationIdForm } from '../contract/limits.ts'
import { ServiceError } from './errors.ts'

/** Returns the name of the violated rule, or undefined. */
type Rule<T> = (value: T) => string | undefined

const localeTag = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/
const controlCharacter = /[^\P{Cc}\t\n]/u
const anyControlCharacter = /\p{Cc}/u
const colour = /^#[0-9a-f]{6}$/i

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Throws `ValidationFailed` with every violated rule, but never with values. */
export function validate(...fields: (FieldIssue | undefined)[]) {
  const issues = fields.filter((issue) => issue !== undefined)
  if (issues.length > 0) throw new ServiceError('ValidationFailed', { issues })
}

/** Checks a field. An absent value is valid here. */
export function field<T>(path: string, value: T | undefined, rule: Rule<T>): FieldIssue | undefined {
  if (value === undefined) return undefined
  const violated = rule(value)
  return violated === undefined ? undefined : { path, rule: violated }
}

export const issueIf = (isViolated: unknown, path: string, rule: string): FieldIssue | undefined =>
  isViolated ? { path, rule } : undefined

/** Accepts `min` to `max` code points without control characters other than tab and newline. */
export function text(min: number, max: number): Rule<string> {
  return (value) => {
    if (isShorterThan(min, value)) return 'minLength'
    if (!isShorterThan(max + 1, value)) return 'maxLength'
    return controlCharacter.test(value) || !value.isWellFormed() ? 'pattern' : undefined
  }
}

/** Counts code points, and stops at the limit. */
function isShorterThan(codePoints: number, value: string) {
  if (value.length < codePoints) return true
  let counted = 0
  for (const _ of value) if (++counted >= codePoints) return false
  return codePoints > 0
}

export function line(min: number, max: number): Rule<string> {
  return (value) => text(min, max)(value) ?? (anyControlCharacter.test(value) ? 'pattern' : undefined)
}

/** Accepts text that does not consist of white space only (contract, section 3). */
export function messageBody(max: number): Rule<string> {
  return (value) => text(1, max)(value) ?? (value.trim() === '' ? 'pattern' : undefined)
}

export const isIdempotencyKey = (value: string): boolean => operationIdForm.test(value)

export const operationId: Rule<string> = (value) => (operationIdForm.test(value) ? undefined : 'pattern')

export const locale: Rule<string> = (value) =>
  value.length > 35 ? 'maxLength' : localeTag.test(value) ? undefined : 'pattern'

export const hexColour: Rule<string> = (value) => (colour.test(value) ? undefined : 'pattern')

export function oneOf<T>(...allowed: T[]): Rule<T> {
  return (value) => (allowed.includes(value) ? undefined : 'enum')
}

export function integer(minimum: number, maximum: number): Rule<number> {
  return (value) => (value < minimum ? 'minimum' : value > maximum ? 'maximum' : undefined)
}

/** Checks texts that visitors can send with a tap. */
export function quickReplyIssues(path: string, texts: string[], max = 5): (FieldIssue | undefined)[] {
  const isBlank = (text: string) => text.trim() === ''
  return [
    issueIf(texts.length > max, path, 'maxItems'),
    issueIf(new Set(texts).size < texts.length, path, 'uniqueItems'),
    ...texts.map((text, index) =>
      field(`${path}/${index}`, text, (value) => line(1, 80)(value) ?? (isBlank(value) ? 'pattern' : undefined)),
    ),
  ]
}

export function agentIssues(
  { displayName, avatarUrl }: { displayName: string; avatarUrl?: string },
  path = '/agent',
): (FieldIssue | undefined)[] {
  return [field(`${path}/displayName`, displayName, text(1, 128)), field(`${path}/avatarUrl`, avatarUrl, pictureUrl)]
}

/** Accepts an absolute URL with one of the schemes, at most 2,048 characters, without user info. */
export function url(...schemes: ('http' | 'https')[]): Rule<string> {
  return (value) => {
    if (value.length > 2048) return 'maxLength'
    const parsed = URL.parse(value)
    const allowed = parsed && schemes.some((scheme) => parsed.protocol === `${scheme}:`)
    return allowed && parsed.username === '' && parsed.password === '' ? undefined : 'format'
  }
}

const hostsOfThisMachine = ['localhost', '127.0.0.1', '[::1]']

/** Accepts an https URL, or an http URL of this machine, as in development. */
export const pictureUrl: Rule<string> = (value) =>
  url('https', ...(hostsOfThisMachine.includes(URL.parse(value)?.hostname ?? '') ? (['http'] as const) : []))(value)
