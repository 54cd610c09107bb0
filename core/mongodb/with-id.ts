export const withId = <D extends { _id: string }>({ _id, ...rest }: D) => ({ ...rest, id: _id })
