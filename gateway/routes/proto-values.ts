import type { MessageInitShape } from '@bufbuild/protobuf'
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt'
import type { PageContextSchema } from '#proto/session/v1/visitor_pb.js'
import type { PageContext } from '../schemas/fields.ts'

const UINT32_MAX = 0xffff_ffff

/** RFC 3339 in UTC with milliseconds. */
export function timeOf(timestamp: Timestamp | undefined): string {
  if (timestamp === undefined) throw new Error('the core left out a time')
  return timestampDate(timestamp).toISOString()
}

/** A sequence as the protos carry it: no log grows past the bound, so a greater one means the same. */
export function toUint32(sequence: number | undefined): number | undefined {
  return sequence === undefined ? undefined : Math.min(sequence, UINT32_MAX)
}

/**
 * The advisory fields of a body as the protos carry them: without lone surrogates, and without a viewport that is no size.
 * All other repairs are the core's.
 */
export function toAdvisory({ locale, pageContext }: { locale?: string; pageContext?: PageContext }) {
  return {
    ...(locale === undefined ? {} : { locale: toUnicode(locale) }),
    ...(pageContext && { pageContext: toPageContext(pageContext) }),
  }
}

export function toPageContext({
  url,
  title,
  referrer,
  viewport,
}: PageContext): MessageInitShape<typeof PageContextSchema> {
  const [width, height] = [Math.round(viewport?.width ?? -1), Math.round(viewport?.height ?? -1)]
  return {
    url: toUnicode(url),
    ...(title === undefined ? {} : { title: toUnicode(title) }),
    ...(referrer === undefined ? {} : { referrer: toUnicode(referrer) }),
    ...(isUint32(width) && isUint32(height) && { viewport: { width, height } }),
  }
}

function toUnicode(text: string): string {
  return text.replace(/\p{Cs}/gu, '')
}

function isUint32(value: number): boolean {
  return value >= 0 && value <= UINT32_MAX
}
