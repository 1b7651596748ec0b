"""Internal names of `metrifair.studio` that tests use."""

from metrifair.studio import child, folders, session
from metrifair.studio.access import Access
from metrifair.studio.commands import (
    TableFile,
    choice_commands,
    columns_command,
    evidence_command,
    not_features,
)
from metrifair.studio.folders import private_folder, remove_dead_folders
from metrifair.studio.messages import FIELDS, page_text
from metrifair.studio.page_texts import STUDIO_TEXTS, criterion_options
from metrifair.studio.scripts import choice_python, evidence_python
from metrifair.studio.server import studio_app
from metrifair.studio.session import Done, Refused, Session, stored_name
