"""Small sites with the layouts of public Django projects. Each is a site before pgperf."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from tests.installation.steps import Project

APPS = """
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
    "django.contrib.sessions", "django.contrib.messages", "django.contrib.staticfiles",
"""
COMMON = """
SECRET_KEY = "a-key-for-tests"
DEBUG = True
ROOT_URLCONF = "{package}.urls"
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
)
TEMPLATES = [{{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {{"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]}},
}}]
"""
DATABASE = """
DATABASES = {
    "default": {
        "ENGINE": os.environ.get("DB_ENGINE", "django.db.backends.postgresql"),
        **{name: os.environ[f"DB_{name}"] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")},
    }
}
"""
#: A cache, and no place for a queue: each request of the site may flush it.
CACHE = """
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": os.environ.get("REDIS_URL", "redis://cache.invalid:6379/0"),
    }
}
"""
URLS = """
from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
"""
MANAGE = """
import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "{settings}")
execute_from_command_line(sys.argv)
"""
CELERY = """
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "{settings}")
app = Celery("{package}")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
"""


@dataclass(frozen=True)
class Layout:
    """A site: its files, and what a reader of docs/install.md knows about it."""

    name: str
    project: Project
    files: Mapping[str, str]
    requirements: tuple[str, ...] = ()
    #: What the site's terminals set.
    variables: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path, env: Mapping[str, str]) -> None:
        """Files with `$NAME` take the variable's value, as in a `.env` file."""
        names = {"package": self.project.package, "settings": self.project.settings}
        shared = {
            "manage.py": MANAGE.format(**names),
            f"{self.project.package}/__init__.py": "",
            f"{self.project.package}/urls.py": URLS,
        }
        for name, text in {**shared, **self.files}.items():
            for variable in ("DB_NAME", "DB_USER", "DB_PASSWORD", "DB_HOST", "DB_PORT", "PGPERF_BROKER_URL"):
                text = text.replace(f"${variable}", env[variable])
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip())


#: As healthchecks: one module, tuples, a local module imported at the end.
TUPLE = Layout(
    "tuple",
    Project("checks", "checks.settings", has_driver=True),
    {
        "checks/settings.py": f"import os\n{COMMON.format(package='checks')}{DATABASE}{CACHE}"
        f"INSTALLED_APPS = ({APPS})\nfrom .local_settings import *\n",
        "checks/local_settings.py": "ALLOWED_HOSTS = ('*',)\n",
    },
)
#: As wagtail's bakerydemo: a package of settings, BASE_DIR a string.
PACKAGE = Layout(
    "package",
    Project("bakery", "bakery.settings.dev", has_driver=True),
    {
        "bakery/settings/__init__.py": "",
        "bakery/settings/base.py": "import os\nBASE_DIR = os.path.dirname(os.path.abspath(__file__))\n"
        f"{COMMON.format(package='bakery')}{DATABASE}INSTALLED_APPS = [{APPS}]\n",
        "bakery/settings/dev.py": "from .base import *\nALLOWED_HOSTS = ['*']\n"
        "try:\n    from .local import *\nexcept ImportError:\n    pass\n",
    },
)
#: As HackSoft's style guide: django-environ with a .env file, and Celery in an app's package.
ENVIRON_AND_CELERY = Layout(
    "environ",
    Project("config", "config.django.base", celery="example.tasks", has_driver=True),
    {
        ".env": "DATABASE_URL=postgres://$DB_USER:$DB_PASSWORD@$DB_HOST:$DB_PORT/$DB_NAME\n"
        "JOBS_URL=$PGPERF_BROKER_URL\n",
        "config/django/__init__.py": "",
        "config/env.py": "import environ\nenv = environ.Env()\nBASE_DIR = environ.Path(__file__) - 2\n",
        "config/django/base.py": "import os\nfrom config.env import BASE_DIR, env\n"
        f"env.read_env(os.path.join(BASE_DIR, '.env'))\n{COMMON.format(package='config')}"
        "DATABASES = {'default': env.db('DATABASE_URL')}\n"
        f"LOCAL_APPS = ['example.tasks.apps.TasksConfig']\nINSTALLED_APPS = [{APPS} *LOCAL_APPS]\n"
        "from config.settings.celery import *\n",
        "config/settings/__init__.py": "",
        "config/settings/celery.py": "from config.env import env\nCELERY_BROKER_URL = env('JOBS_URL')\n"
        "CELERY_TASK_SOFT_TIME_LIMIT = 2\nCELERY_TASK_TIME_LIMIT = 3\n",
        "example/__init__.py": "",
        "example/tasks/__init__.py": "from .celery import app as celery_app\n__all__ = ('celery_app',)\n",
        "example/tasks/apps.py": "from django.apps import AppConfig\n"
        "class TasksConfig(AppConfig):\n    name = 'example.tasks'\n",
        "example/tasks/celery.py": CELERY.format(package="example", settings="config.django.base"),
    },
    ("django-environ",),
)
#: As wger: settings beside the package, which imports its Celery application. The variable names
#: other settings than manage.py, and those of manage.py cannot be imported here.
SETTINGS_BESIDE = Layout(
    "beside",
    Project("gym", "settings.local_dev", celery="gym", has_driver=True),
    {
        "manage.py": MANAGE.format(settings="settings.main"),
        "settings/__init__.py": "",
        "settings/shared.py": f"import os\n{COMMON.format(package='gym')}INSTALLED_APPS = [{APPS}]\n",
        "settings/main.py": "from .shared import *\nSECRET_KEY = os.environ['PRODUCTION_KEY']\n",
        "settings/local_dev.py": f"from .shared import *\n{DATABASE}"
        "CELERY_BROKER_URL = os.environ['PGPERF_BROKER_URL']\n",
        "gym/__init__.py": "from gym.celery_configuration import app\n",
        "gym/celery_configuration.py": CELERY.format(package="gym", settings="settings.main"),
    },
    variables={"DJANGO_SETTINGS_MODULE": "settings.local_dev"},
)
LAYOUTS = (TUPLE, PACKAGE, ENVIRON_AND_CELERY, SETTINGS_BESIDE)
