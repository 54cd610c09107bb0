import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt'

/** Returns a time of an answer for people. */
export const timeText = (time: Timestamp | undefined): string =>
  time === undefined ? 'an unknown time' : timestampDate(time).toISOString()
