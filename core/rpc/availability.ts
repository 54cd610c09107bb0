import type { MessageInitShape } from '@bufbuild/protobuf'
import type { Availability as AvailabilityMessage, AvailabilitySchema } from '#proto/workspace/v1/workspace_pb.js'
import type { Availability } from '../workspaces/model.ts'

export function toAvailability({
  weeklyHours,
  exceptions,
  ...rest
}: Availability): MessageInitShape<typeof AvailabilitySchema> {
  return { ...rest, weeklyHours: { hours: weeklyHours }, exceptions: { dates: exceptions } }
}

/** Returns the fields that the message sets. */
export function fromAvailability({
  mode,
  timeZone,
  weeklyHours,
  exceptions,
  requiresOperator,
}: AvailabilityMessage): Partial<Availability> {
  return {
    ...(mode === undefined ? {} : { mode: mode as Availability['mode'] }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(weeklyHours && { weeklyHours: weeklyHours.hours.map(({ weekday, from, to }) => ({ weekday, from, to })) }),
    ...(exceptions && {
      exceptions: exceptions.dates.map(({ date, hours }) => ({
        date,
        hours: hours.map(({ from, to }) => ({ from, to })),
      })),
    }),
    ...(requiresOperator === undefined ? {} : { requiresOperator }),
  }
}
