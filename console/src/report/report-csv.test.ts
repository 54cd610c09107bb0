import { create } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { ReportSchema } from '#proto/messaging/v1/messaging_pb.js'
import { csvField, toCsv } from './report-csv.ts'

it.each([
  ['=HYPERLINK("https://evil.example")', `"'=HYPERLINK(""https://evil.example"")"`],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@sum(a1)', "'@sum(a1)"],
  ['\tx', "'\tx"],
  ['＝1+1', "'＝1+1"],
  ['a,b', '"a,b"'],
  ['two\r\nlines', '"two\r\nlines"'],
  ['vip', 'vip'],
  [-5, '-5'],
  [undefined, ''],
])('writes %j as a field that no spreadsheet runs', (value, field) => {
  expect(csvField(value)).toBe(field)
})

it('writes the total, the days, the hours and the tags', () => {
  const figures = { conversations: 2, answered: 1, medianAnswerSeconds: 30.5, p90AnswerSeconds: 60, ratings: 0 }
  const report = create(ReportSchema, {
    total: figures,
    byDay: [{ name: '2026-03-02', ...figures, ratings: 1, meanRating: 4.5 }],
    byTag: [{ name: '=cmd', conversations: 1 }],
  })
  expect(toCsv(report).split('\r\n').slice(1)).toEqual([
    'total,,2,1,30.5,60,0,',
    'day,2026-03-02,2,1,30.5,60,1,4.5',
    "tag,'=cmd,1,0,,,0,",
    '',
  ])
})
