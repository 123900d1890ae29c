// The plain texts of a task that are shown from this list and not by name: a new field is a row here, with
// its label in every language. filter: a link to the tasks with the same value. edit: people may change it.
import { language } from './text.js';

const FIELDS = [
    { name: 'note', edit: true, label: { en: 'Note', fr: 'Note', pt: 'Nota' } },
    { name: 'idempotency_key', label: { en: 'Idempotency key', fr: 'Clé d’idempotence',
        pt: 'Chave de idempotência' } },
    { name: 'user_id', filter: true, label: { en: 'User', fr: 'Utilisateur', pt: 'Utilizador' } },
    { name: 'external_id', label: { en: 'External id', fr: 'Id externe', pt: 'Id externo' } },
    { name: 'context_key', filter: true, label: { en: 'Context', fr: 'Contexte', pt: 'Contexto' } },
    { name: 'correlation_id', filter: true, label: { en: 'Correlation', fr: 'Corrélation', pt: 'Correlação' } },
    { name: 'limit_key', label: { en: 'Limit key', fr: 'Clé de limite', pt: 'Chave de limite' } },
];
const inWords = (field) => ({ ...field, label: field.label[language.get()] });

export const facts = () => FIELDS.filter((field) => !field.edit).map(inWords);
export const edits = () => FIELDS.filter((field) => field.edit).map(inWords);
