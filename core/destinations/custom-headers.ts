import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { FieldIssue } from '../../contract/errors.ts'
import { ServiceError } from '../errors.ts'
import type { SecretBox } from '../keys/secret-box.ts'
import { field } from '../rules.ts'
import type { CustomHeader } from './secrets-model.ts'

/** A custom header in a request. Without a value, the stored value of this name is kept. */
export interface GivenHeader {
  name: string
  value?: string
}

const maxHeaders = 10
const nameMaxLength = 64
const valueMaxLength = 1024

/** Headers that the service or the HTTP connection sets. */
const reserved = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-correlation-id',
])
const reservedPrefixes = ['content-', 'proxy-', 'webhook-', 'x-service-']

/** A token (RFC 9110, section 5.6.2) that begins with a letter or digit. */
const token = /^[0-9a-z][!#$%&'*+.^_`|~0-9a-z-]*$/
/** Visible ASCII characters. Spaces and tabs are allowed between them. */
const fieldValue = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/

/**
 * Returns the violated rules of custom headers. `stored` are the headers that the subscription has
 * before the change.
 */
export function headerIssues(headers: GivenHeader[], stored: CustomHeader[]): (FieldIssue | undefined)[] {
  if (headers.length > maxHeaders) return [{ path: '/headers', rule: 'maxItems' }]
  const names = headers.map(({ name }) => name.toLowerCase())
  return headers.flatMap(({ value }, index) => [
    field(`/headers/${index}/name`, names[index], (name) => nameRule(name, names.indexOf(name) === index)),
    value === undefined
      ? stored.some(({ name }) => name === names[index])
        ? undefined
        : { path: `/headers/${index}/value`, rule: 'required' }
      : field(`/headers/${index}/value`, value, valueRule),
  ])
}

function nameRule(name: string, isFirst: boolean): string | undefined {
  if (name.length > nameMaxLength) return 'maxLength'
  if (!token.test(name)) return 'pattern'
  if (reserved.has(name) || reservedPrefixes.some((prefix) => name.startsWith(prefix))) return 'reserved'
  return isFirst ? undefined : 'uniqueItems'
}

function valueRule(value: string): string | undefined {
  if (value.length > valueMaxLength) return 'maxLength'
  return fieldValue.test(value) ? undefined : 'pattern'
}

/**
 * Returns the headers in the form that is stored. Headers without a value keep their stored value.
 * Errors: `ValidationFailed` if another call removed that value in the meantime.
 */
export function sealedHeaders(
  secretBox: Pick<SecretBox, 'seal'>,
  headers: GivenHeader[],
  stored: CustomHeader[],
): CustomHeader[] {
  return headers.map((given) => {
    const name = given.name.toLowerCase()
    if (given.value !== undefined) return { name, sealed: secretBox.seal(given.value) }
    const kept = stored.find((header) => header.name === name)
    if (!kept) throw new ServiceError(ErrorCode.VALIDATION_FAILED)
    return kept
  })
}
