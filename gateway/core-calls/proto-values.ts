import type { MessageInitShape } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema, timestampDate } from '@bufbuild/protobuf/wkt'
import type { PageContextSchema } from '#proto/session/v1/visitor_pb.js'
import type { PageContext } from '../schemas/fields.ts'

const UINT32_MAX = 0xffff_ffff
const TIMESTAMP = TimestampSchema.typeName

export function timeOf(timestamp: Timestamp | undefined): string {
  if (timestamp === undefined) throw new Error('the answer of the core has no time')
  return timestampDate(timestamp).toISOString()
}

/** The serializer refuses an answer without a time that its schema requires. */
type WithTimes<M> = { [K in keyof M as Timestamp extends M[K] ? K : never]-?: string } & {
  [K in keyof M as Timestamp extends M[K] ? never : K]: M[K]
}

/** Returns the fields of a message, with times in the format of `timeOf`. */
export function withTimes<M extends object>(message: M): WithTimes<M> {
  const fields = { ...message } as Record<string, unknown>
  for (const name in fields) {
    const value = fields[name] as Timestamp | undefined
    if (value?.$typeName === TIMESTAMP) fields[name] = timeOf(value)
  }
  return fields as WithTimes<M>
}

/** Limits a sequence to uint32. No log has more events. */
export function toUint32(sequence: number | undefined): number | undefined {
  return sequence === undefined ? undefined : Math.min(sequence, UINT32_MAX)
}

/**
 * Converts the advisory fields. Removes only what the protos cannot represent: lone surrogates and an
 * invalid viewport. The core repairs the rest.
 */
export function toAdvisory({ locale, pageContext }: { locale?: string; pageContext?: PageContext }) {
  return {
    locale: locale && toUnicode(locale),
    pageContext: pageContext && toPageContext(pageContext),
  }
}

export function toPageContext(page: PageContext): MessageInitShape<typeof PageContextSchema> {
  const { url, title, referrer, viewport } = page
  const [width, height] = [Math.round(viewport?.width ?? -1), Math.round(viewport?.height ?? -1)]
  return {
    url: toUnicode(url),
    title: title && toUnicode(title),
    referrer: referrer && toUnicode(referrer),
    viewport: isUint32(width) && isUint32(height) ? { width, height } : undefined,
  }
}

function toUnicode(text: string) {
  return text.replace(/\p{Cs}/gu, '')
}

function isUint32(value: number) {
  return value >= 0 && value <= UINT32_MAX
}
