import type { MessageInitShape } from '@bufbuild/protobuf'
import { useState } from 'preact/hooks'
import type { Suppression, SuppressionEntrySchema } from '#proto/workspace/v1/workspace_pb.js'
import type { EntryKind } from '../../../contract/suppression-list.ts'
import { useConsole } from '../console-context.ts'
import { fieldWords } from '../failures.ts'
import { countOf } from '../time.ts'
import { DialogButton, type DialogButtonProps } from '../ui/dialog.tsx'
import { ReasonField, SearchBar, SelectField, TextField } from '../ui/form.tsx'
import { useLoad } from '../ui/load.tsx'
import { FailureNotice, Notice, RowText, When } from '../ui/page.tsx'

export const kindText = (kind: string) => fieldWords([kind])
export const kinds = (['email', 'phone', 'subject'] as const).map((kind) => [kind, kindText(kind)] as const)

const plurals: Record<EntryKind, [one: string, many: string]> = {
  email: ['# e-mail address', '# e-mail addresses'],
  phone: ['# phone number', '# phone numbers'],
  subject: ['# visitor id', '# visitor ids'],
}

export const countOfKind = (count: number, kind: EntryKind) => countOf(count, ...plurals[kind])
export const wrongKinds: Record<EntryKind, string> = {
  email: 'not an e-mail address',
  phone: 'not a phone number',
  subject: 'not a visitor id',
}

export function toEntry(kind: EntryKind, value: string): MessageInitShape<typeof SuppressionEntrySchema> {
  return { of: { case: kind, value: value.trim() } }
}

export function LookUp({ changes, onChanged }: { changes: number; onChanged: (text: string) => void }) {
  const { api } = useConsole()
  const [kind, setKind] = useState<EntryKind>('email')
  const [person, setPerson] = useState<Person>()
  const { failure, ...found } = useLoad(async () => {
    if (!person) return undefined
    const entry = toEntry(person.kind, person.value)
    return { ...person, suppression: (await api.workspaces.listSuppressions({ entry })).suppressions[0] }
  }, [person, changes])
  const result = found.value

  return (
    <>
      <SearchBar
        label={kindText(kind)}
        maxLength={400}
        button="Look up"
        onSearch={(value) => setPerson({ kind, value })}
      >
        <SelectField label="Kind" value={kind} options={kinds} onChange={(next) => setKind(next as EntryKind)} />
      </SearchBar>
      <FailureNotice failure={failure} />
      <div role="status">
        {result?.suppression && (
          <Notice tone="warning" action={<RemoveEntry suppression={result.suppression} onChanged={onChanged} />}>
            <bdi class="breakable">{result.value}</bdi> is on the list since{' '}
            <When at={result.suppression.addedAt} full />, added by {result.suppression.addedBy}
            {result.suppression.reason && `: ${result.suppression.reason}`}
          </Notice>
        )}
        {result && !result.suppression && (
          <Notice tone="info" action={<AddSuppression button="Add to list" person={result} onAdded={onChanged} />}>
            <bdi class="breakable">{result.value}</bdi> is not on the list.
          </Notice>
        )}
      </div>
    </>
  )
}

interface Person {
  kind: EntryKind
  value: string
}

interface AddSuppressionProps extends Pick<DialogButtonProps<object>, 'button' | 'kind' | 'icon'> {
  person?: Person
  onAdded: (text: string) => void
}

const hints: Record<EntryKind, string> = {
  email: 'Upper and lower case make no difference.',
  phone: 'With country code, for example +43 660 1234567.',
  subject: 'The id by which your backend identifies visitors. Upper and lower case differ.',
}

export function AddSuppression({ person = { kind: 'email', value: '' }, onAdded, ...button }: AddSuppressionProps) {
  const { api } = useConsole()
  return (
    <DialogButton
      {...button}
      title="Add to the list"
      action="Add entry"
      start={{ ...person, reason: '' }}
      isReady={({ value }) => value.trim() !== ''}
      onConfirm={async ({ kind, value, reason }) => {
        const entries = [toEntry(kind, value)]
        const { added } = await api.workspaces.addSuppressions({ entries, reason: reason.trim() })
        onAdded(added > 0 ? 'Entry added.' : 'This entry was on the list already.')
      }}
    >
      {({ draft: { kind }, field }) => (
        <>
          <p>Deliveries of the person’s leads that have not begun end at once.</p>
          <SelectField label="Kind" options={kinds} {...field('kind')} />
          <TextField label={kindText(kind)} hint={hints[kind]} maxLength={400} {...field('value')} />
          <ReasonField {...field('reason')} />
        </>
      )}
    </DialogButton>
  )
}

interface RemoveEntryProps {
  suppression: Suppression
  onChanged: (text: string) => void
}

export function RemoveEntry({ suppression, onChanged }: RemoveEntryProps) {
  const { api } = useConsole()
  const { suppressionId } = suppression
  return (
    <DialogButton
      button="Remove"
      label={`Remove entry ${suppressionId}`}
      title="Remove this entry?"
      action="Remove entry"
      danger
      onConfirm={async () => {
        await api.workspaces.removeSuppressions({ suppressionIds: [suppressionId] })
        onChanged('Entry removed.')
      }}
    >
      <p>The person can be contacted again. Deliveries that the entry ended stay ended; you can retry them.</p>
      <SuppressionFacts suppression={suppression} />
    </DialogButton>
  )
}

export const SuppressionFacts = ({ suppression }: { suppression: Suppression }) => (
  <RowText title={suppression.reason || 'No reason given'}>
    added by {suppression.addedBy} · <code>{suppression.suppressionId}</code>
  </RowText>
)
