import { useState } from 'preact/hooks'
import type { Suppression } from '#proto/workspace/v1/workspace_pb.js'
import type { EntryKind } from '../../../contract/suppression-list.ts'
import { useConsole } from '../console-context.ts'
import { ActionDialog, DialogButton } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/form.tsx'
import { useLoad } from '../ui/load.tsx'
import { Button, FailureNotice, Notice, RowText, When } from '../ui/page.tsx'
import { kinds, kindText, toEntry } from './suppression-words.ts'

interface LookUpProps {
  /** Number of changes of the suppression list. Each change reloads the shown result. */
  changes: number
  onChanged: (text: string) => void
}

/** Finds out whether one person is on the list. */
export function LookUp({ changes, onChanged }: LookUpProps) {
  const { api } = useConsole()
  const [kind, setKind] = useState<EntryKind>('email')
  const [value, setValue] = useState('')
  const [person, setPerson] = useState<{ kind: EntryKind; value: string }>()
  const [isAdding, setAdding] = useState(false)
  const { failure, ...found } = useLoad(async () => {
    if (!person) return undefined
    const entry = toEntry(person.kind, person.value)
    return { ...person, suppression: (await api.workspaces.listSuppressions({ entry })).suppressions[0] }
  }, [person, changes])
  const result = found.value

  return (
    <>
      <form
        class="bar look-up"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (value.trim() !== '') setPerson({ kind, value })
        }}
      >
        <SelectField label="Kind" value={kind} options={kinds} onChange={(next) => setKind(next as EntryKind)} />
        <TextField label={kindText(kind)} maxLength={400} value={value} onChange={setValue} />
        <Button type="submit" disabled={value.trim() === ''} text="Look up" />
      </form>
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
          <Notice tone="info" action={<Button kind="small" onClick={() => setAdding(true)} text="Add to list" />}>
            <bdi class="breakable">{result.value}</bdi> is not on the list.
          </Notice>
        )}
      </div>
      {isAdding && result && (
        <AddSuppression kind={result.kind} value={result.value} onClose={() => setAdding(false)} onAdded={onChanged} />
      )}
    </>
  )
}

interface AddSuppressionProps {
  kind?: EntryKind
  value?: string
  onClose: () => void
  onAdded: (text: string) => void
}

const hints: Record<EntryKind, string> = {
  email: 'Upper and lower case make no difference.',
  phone: 'With country code, for example +43 660 1234567.',
  subject: 'The id by which your backend identifies visitors. Upper and lower case differ.',
}

export function AddSuppression({
  kind: initialKind = 'email',
  value: initial = '',
  onClose,
  onAdded,
}: AddSuppressionProps) {
  const { api } = useConsole()
  const [kind, setKind] = useState(initialKind)
  const [value, setValue] = useState(initial)
  const [reason, setReason] = useState('')
  return (
    <ActionDialog
      title="Add to the list"
      action="Add entry"
      disabled={value.trim() === ''}
      onClose={onClose}
      onConfirm={async () => {
        const { added } = await api.workspaces.addSuppressions({
          entries: [toEntry(kind, value)],
          reason: reason.trim(),
        })
        onAdded(added > 0 ? 'Entry added.' : 'This entry was on the list already.')
      }}
    >
      <p>Deliveries of the person’s leads that have not begun end at once.</p>
      <SelectField label="Kind" value={kind} options={kinds} onChange={(next) => setKind(next as EntryKind)} />
      <TextField label={kindText(kind)} hint={hints[kind]} maxLength={400} value={value} onChange={setValue} />
      <TextField
        label="Reason"
        hint="For your records. Visitors never see it."
        maxLength={512}
        value={reason}
        onChange={setReason}
      />
    </ActionDialog>
  )
}

export interface RemoveEntryProps {
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

export function SuppressionFacts({
  suppression: { suppressionId, addedBy, reason },
}: Pick<RemoveEntryProps, 'suppression'>) {
  return (
    <RowText title={reason || 'No reason given'}>
      added by {addedBy} · <span class="mono">{suppressionId}</span>
    </RowText>
  )
}
