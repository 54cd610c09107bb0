/**
 * Files of `npm test` whose tests may take longer than two seconds: journeys through whole systems,
 * which no cheaper test can show. At most 40.
 */
export const journeys: string[] = []
