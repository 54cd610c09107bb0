import { useEffect, useRef, useState } from 'preact/hooks'
import type { Report } from '#proto/messaging/v1/messaging_pb.js'
import { saveText } from '../../../browser/chat/save-text.ts'
import { useConsole } from '../console-context.ts'
import { areaName } from '../router.ts'
import { countOf } from '../time.ts'
import { SelectField, TextField } from '../ui/form.tsx'
import { useLoad } from '../ui/load.tsx'
import { Button, FailureNotice, Loading, Page } from '../ui/page.tsx'
import { Figures } from './figures.tsx'
import { toCsv } from './report-csv.ts'

const periods = [7, 14, 28].map((days) => [String(days), `${days} days`] as const)
const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

/** Shows how many conversations began, how soon they were answered, and how they were rated. */
export function ReportView() {
  const { api, announcer } = useConsole()
  const [days, setDays] = useState(7)
  const [firstDay, setFirstDay] = useState('')
  const [read, setRead] = useState(0)
  const current = useRef(new AbortController())

  const loaded = useLoad(async () => {
    current.current.abort()
    current.current = new AbortController()
    setRead(0)
    let report: Report | undefined
    const query = { days, firstDay: firstDay || undefined, timeZone }
    for await (const { frame } of api.messaging.getReport(query, { signal: current.current.signal })) {
      if (frame.case === 'progress') setRead(frame.value.conversations)
      else report = frame.value
    }
    announcer.say(
      countOf(report?.total?.conversations ?? 0, '# conversation in the report.', '# conversations in the report.'),
    )
    return report
  }, [days, firstDay])
  useEffect(() => () => current.current.abort(), [])

  const { value: report, failure, loading } = loaded
  const isTooLarge = failure?.issues.some(({ path }) => path === '/days')
  const text = 'Too many conversations. Choose fewer days or a later first day.'
  return (
    <Page
      title={areaName('report')}
      lead="A conversation counts on the day of its first message, with its first answer and its ratings."
      actions={
        <Button
          disabled={!report}
          onClick={() => report && saveText(`report-${report.firstDay}.csv`, 'text/csv', toCsv(report))}
          text="Download CSV"
        />
      }
    >
      <div class="bar">
        <SelectField
          label="Period"
          value={String(days)}
          options={periods}
          onChange={(chosen) => setDays(Number(chosen))}
        />
        <TextField label="First day" type="date" value={firstDay || (report?.firstDay ?? '')} onChange={setFirstDay} />
      </div>
      <FailureNotice failure={failure && isTooLarge ? { ...failure, text } : failure} retry={loaded.reload} />
      {loading && (
        <>
          <Loading label="Loading the report" />
          {read > 0 && <p class="hint">{countOf(read, '# conversation read', '# conversations read')}</p>}
        </>
      )}
      {report && <Figures report={report} />}
    </Page>
  )
}
