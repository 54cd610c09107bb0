import { create, type MessageInitShape } from '@bufbuild/protobuf'
import type { ServiceImpl } from '@connectrpc/connect'
import {
  GetReportResponseSchema,
  type MessagingService,
  type ReportRowSchema,
} from '#proto/messaging/v1/messaging_pb.js'

type Row = MessageInitShape<typeof ReportRowSchema>

/** A fake report. It is empty until `add` is called; then each call returns the same figures. */
export function fakeReport() {
  let isFilled = false
  let perDay = [12, 31, 0, 44, 38, 9, 27]
  const figures = (name: string, conversations: number): Row => ({
    name,
    conversations,
    answered: Math.floor(conversations * 0.8),
    ...(conversations > 0 && {
      medianAnswerSeconds: 40 + conversations * 5,
      p90AnswerSeconds: 400 + conversations * 20,
    }),
    ratings: Math.floor(conversations / 3),
    ...(conversations > 2 && { meanRating: 3 + (conversations % 3) * 0.7 }),
  })

  function dayAfter(firstDay: string, index: number): string {
    const day = new Date(firstDay)
    day.setUTCDate(day.getUTCDate() + index)
    return day.toISOString().slice(0, 10)
  }

  const methods = {
    async *getReport({ firstDay = '2026-11-20', days = 7 }) {
      yield create(GetReportResponseSchema, { frame: { case: 'progress', value: { conversations: 120 } } })
      const count = (value: number) => (isFilled ? value : 0)
      const byDay = Array.from({ length: days }, (_, at) =>
        figures(dayAfter(firstDay, at), count(perDay[at % perDay.length]!)),
      )
      const byHour = Array.from({ length: 24 }, (_, hour) =>
        figures(String(hour).padStart(2, '0'), count(Math.max(0, Math.round(20 - (hour - 13) ** 2 / 3)))),
      )
      const tags = ['refund', 'vip', '=cmd', 'مرتجع', 'a tag with a name that is quite long']
      const byTag = isFilled ? tags.map((tag, at) => figures(tag, 40 - at * 9)) : []
      const value = { firstDay, total: figures('', count(161)), byDay, byHour, byTag }
      yield create(GetReportResponseSchema, { frame: { case: 'report', value } })
    },
  } satisfies Partial<ServiceImpl<typeof MessagingService>>

  return {
    methods,
    /** Fills the report. */
    add(conversations = perDay) {
      isFilled = true
      perDay = conversations
    },
  }
}
