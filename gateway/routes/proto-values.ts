import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt'

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
